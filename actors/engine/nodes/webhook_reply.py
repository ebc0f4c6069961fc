"""WebhookReplyNode: answers a call of a webhook that waits for a reply.

The first answer to a call counts. Without an id at `replyIdPath` (by default `data.replyId`), or if nobody waits for it
any more, the node does nothing. The body and the headers are those of an `EndpointReplyNode`, and so is the status; a
body has at most 256 KiB. Cookies, pages and streams are for endpoints of experiences, and messages to WebSocket
connections are not sent by this server: a node that has one of these is refused.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.engine.reply_parts import bytes_of, headers_of, status_of, value_of
from trunkline.actors.engine.tools import Config, Unusable, list_of, needed_template, path_of, text_of
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.experience.replies import redirect_status
from trunkline.actors.formulas.paths import compile_path
from trunkline.actors.triggers.replies import Replies
from trunkline.actors.webhooks.messages import WebhookReply

TYPE: Final = "WebhookReplyNode"
BODY_BYTES_MAX: Final = 256 * 1024


def prepare(config: Config) -> NodeStep:
    kind = text_of(config, "replyType") or "custom"
    if kind not in ("custom", "redirect"):
        raise Unusable(f"config.replyType: is {kind!r}; give custom or redirect.")
    if config.get("isWebsocketMessage") is True:
        raise Unusable(
            "config.isWebsocketMessage: this server sends no messages to WebSocket connections of webhooks."
        )
    if list_of(config, "cookieInfo"):
        raise Unusable("config.cookieInfo: callers of webhooks get no cookies; leave it out.")
    redirects = kind == "redirect"
    if redirects:
        needed_template(config, "bodyTemplate")
    id_path = path_of(config, "replyIdPath") or compile_path("data.replyId")
    status, headers, value = status_of(config), headers_of(config), value_of(config)

    def step(visit: Visit) -> int:
        id = id_path.get(visit.payload)
        if not isinstance(id, str) or not id:
            return 0
        body = bytes_of(value(visit))
        if len(body) > BODY_BYTES_MAX:
            raise refused(
                f"config.bodyTemplate: gives {len(body)} bytes; a body has at most {BODY_BYTES_MAX}."
            )
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
                replies.reply(world.application, id, reply)
        return 0

    return step
