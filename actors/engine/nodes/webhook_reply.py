"""WebhookReplyNode: answers a call of a webhook that waits for a reply.

The first answer to a call counts. Without an id at `replyIdPath` (by default `data.replyId`), or if nobody waits for it
any more, the node does nothing but note that. The body and the headers are those of an `EndpointReplyNode`, and so is
the status; a body has at most 256 KiB. Cookies, pages and streams are for endpoints of experiences: a node that has one
of these is refused.

With `isWebsocketMessage` the node sends a message to a WebSocket connection of a webhook, as long as it is open: the
body as a text, or, where `encodingTemplate` is not utf8, the bytes that it stands for.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.connections.webhooks.connections import WebhookConnections
from trunkline.actors.connections.webhooks.messages import WebhookReply
from trunkline.actors.engine.encodings import bytes_written, is_utf8
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.reply_parts import (
    ANSWERED,
    BODY,
    BODY_TYPE,
    REPLY,
    REPLY_ID_PATH,
    bytes_of,
    headers_of,
    reply_id_of,
    status_of,
    unheard_of,
    value_of,
)
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    FlagSetting,
    RowsSetting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    is_on,
    list_of,
    needed_template,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.presentation.experience.replies import FRAMING_HEADERS, HOST_HEADERS, redirect_status
from trunkline.actors.workflows.triggers.replies import Replies

TYPE: Final = "WebhookReplyNode"

_REPLY_TYPE: Final = ChoiceSetting("replyType", "custom", "redirect")
_IS_WEBSOCKET_MESSAGE: Final = FlagSetting("isWebsocketMessage")
_ENCODING: Final = TemplateSetting("encodingTemplate")
_COOKIE_INFO: Final = RowsSetting("cookieInfo", is_shown=False)
FORM: Final = Form(
    "output", (_REPLY_TYPE, *REPLY, REPLY_ID_PATH, _IS_WEBSOCKET_MESSAGE, _ENCODING, _COOKIE_INFO)
)
NEEDS: Final = WRITES

BODY_BYTES_MAX: Final = 256 * 1024
_TABOO: Final = FRAMING_HEADERS | HOST_HEADERS
"""Webhooks are on paths of the server."""


def prepare(config: Config) -> NodeStep:
    if is_on(config, _IS_WEBSOCKET_MESSAGE):
        return _message(config)
    kind = text_of(config, _REPLY_TYPE) or "custom"
    if kind not in _REPLY_TYPE.options:
        raise Unusable(f"config.replyType: is {kind!r}; give custom or redirect.")
    if list_of(config, _COOKIE_INFO):
        raise Unusable("config.cookieInfo: callers of webhooks get no cookies; leave it out.")
    redirects = kind == "redirect"
    if redirects:
        needed_template(config, BODY)
    status, headers, value = status_of(config), headers_of(config, _TABOO), value_of(config)
    id_of, note_nobody = reply_id_of(config), unheard_of(config)

    def step(visit: Visit) -> int:
        id = id_of(visit)
        if id is None:
            return 0
        body = _checked(bytes_of(value(visit)))
        if redirects:
            location = ("Location", body.decode())
            reply = WebhookReply(redirect_status(status(visit)), (*headers(visit), location))
        else:
            reply = WebhookReply(status(visit) or 200, headers(visit), body)
        world = visit.run.world
        if world is not None:
            replies = world.system.component(Replies)
            if replies.is_expected(world.application, id):
                world.effect("answers a call")
                if not replies.reply(world.application, id, reply):
                    visit.note(ANSWERED)
            elif world.system.component(WebhookConnections).find(world.application, id) is not None:
                raise refused(
                    "config.isWebsocketMessage: is not set, but the reply is for a WebSocket connection; set it."
                )
            else:
                note_nobody(visit)
        return 0

    return step


def _message(config: Config) -> NodeStep:
    if text_of(config, BODY_TYPE) != "payload":
        needed_template(config, BODY)
    value, encoding = value_of(config), text_reader(config, _ENCODING)
    id_of, note_nobody = reply_id_of(config), unheard_of(config, "no connection is open that has")

    def step(visit: Visit) -> int:
        id = id_of(visit)
        if id is None:
            return 0
        name = encoding(visit).strip()
        text = bytes_of(value(visit)).decode()
        content = _checked(bytes_written(text, name, "config.bodyTemplate"))
        world = visit.run.world
        if world is None:
            return 0
        connection = world.system.component(WebhookConnections).find(world.application, id)
        if connection is not None:
            world.effect("sends a message to a connection")
            connection.send(content, text=is_utf8(name))
        elif world.system.component(Replies).is_expected(world.application, id):
            raise refused(
                "config.isWebsocketMessage: is set, but the reply is for an HTTP request; leave it out."
            )
        else:
            note_nobody(visit)
        return 0

    return step


def _checked(body: bytes) -> bytes:
    if len(body) > BODY_BYTES_MAX:
        raise refused(f"config.bodyTemplate: gives {len(body)} bytes; a body has at most {BODY_BYTES_MAX}.")
    return body
