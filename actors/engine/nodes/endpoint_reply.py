"""EndpointReplyNode: answers a request to an endpoint with a text, a page, a redirection, or a stream of messages.

The first answer to a request counts. Without an id at `replyIdPath` (by default `data.replyId`), or if nobody waits for
it any more, the node does nothing but note that. A status that is none counts as 200, for a redirection as 302.

`bodyTemplateType` says what the body is, or for a page what it calls `pageData`: `string` (the default), `path`,
`json`, `payload` (all of it), or `none`. For a page a text that is JSON counts as its value. A value that is no text is
sent as JSON. `headerInfo` and `cookieInfo` have templates for names and values, and those without a name are left out;
a header whose template is the path of an array is sent once for each item. A cookie without a value is removed;
`maxAgeTemplate` is in milliseconds.

The reply type `mqtt` streams the messages of topics (`presentation/experience/topic_streams.py`): those at
`mqttTopicsPath`, or in `mqttTopicsTemplate`, which is a list of templates, or a template of a JSON array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.engine.heavy_work import copy_of
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.reply_parts import (
    ANSWERED,
    BODY,
    BODY_TYPE,
    COOKIES,
    REPLY,
    REPLY_ID_PATH,
    SAME_SITE,
    bytes_of,
    cookies_of,
    headers_of,
    reply_id_of,
    status_of,
    unheard_of,
    value_of,
)
from trunkline.actors.engine.settings import (
    ChoiceSetting,
    Config,
    JsonSetting,
    PathSetting,
    TemplateSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    item_readers,
    needed_template,
    needed_text_reader,
    path_of,
    shortened,
    template_of,
    text_of,
    text_of_value,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.presentation.experience.replies import Cookie, Page, Reply, redirect_status
from trunkline.actors.presentation.experience.topic_streams import check_topics
from trunkline.actors.workflows.triggers.replies import Replies

TYPE: Final = "EndpointReplyNode"

_REPLY_TYPE: Final = ChoiceSetting("replyType", "custom", "page", "redirect", "mqtt")
_PAGE_ID: Final = TemplateSetting("pageIdTemplate")
_LAYOUT_ID: Final = TemplateSetting("layoutIdTemplate")
_EXPERIENCE_VERSION: Final = TextSetting("experienceVersion")
_TOPICS: Final = JsonSetting("mqttTopicsTemplate")
_TOPICS_PATH: Final = PathSetting("mqttTopicsPath")
FORM: Final = Form(
    "output",
    (
        _REPLY_TYPE,
        *REPLY,
        _PAGE_ID,
        _LAYOUT_ID,
        _EXPERIENCE_VERSION,
        _TOPICS,
        _TOPICS_PATH,
        COOKIES,
        SAME_SITE,
        REPLY_ID_PATH,
    ),
)
NEEDS: Final = WRITES


Make = Callable[[Visit, int, tuple[tuple[str, str], ...], tuple[Cookie, ...]], Reply]


def prepare(config: Config) -> NodeStep:
    kind = choice_of(config, _REPLY_TYPE)
    id_of, note_nobody = reply_id_of(config), unheard_of(config)
    status, headers, cookies = status_of(config), headers_of(config), cookies_of(config)
    make = {"custom": _custom, "page": _page, "redirect": _redirect, "mqtt": _stream}[kind](config)

    def step(visit: Visit) -> int:
        id = id_of(visit)
        if id is None:
            return 0
        reply = make(visit, status(visit), headers(visit), cookies(visit))
        world = visit.run.world
        if world is not None:
            replies = world.system.component(Replies)
            if replies.is_expected(world.application, id):
                world.effect("answers a request")
                if not replies.reply(world.application, id, reply):
                    visit.note(ANSWERED)
            else:
                note_nobody(visit)
        return 0

    return step


def _custom(config: Config) -> Make:
    value = value_of(config)

    def make(
        visit: Visit, status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        return Reply(status or 200, bytes_of(value(visit)), headers, cookies)

    return make


def _page(config: Config) -> Make:
    id, layout = needed_text_reader(config, _PAGE_ID), text_reader(config, _LAYOUT_ID)
    version, value = text_of(config, _EXPERIENCE_VERSION), value_of(config)
    may_be_json = choice_of(config, BODY_TYPE) == "string"

    def make(
        visit: Visit, status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        data = value(visit)
        if may_be_json:
            data = _from_json(data)
        about = visit.run.identity
        flow = {
            "id": about.get("flowId"),
            "name": about.get("flowName"),
            "version": about.get("flowVersion", "develop"),
        }
        page = Page(
            id(visit).strip().lower(),
            layout(visit).strip().lower(),
            data if data is UNDEFINED else copy_of(data),
            flow,
            version,
        )
        return Reply(status or 200, headers=headers, cookies=cookies, page=page)

    return make


def _redirect(config: Config) -> Make:
    needed_template(config, BODY)
    value = value_of(config)

    def make(
        visit: Visit, status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        url = value(visit)
        if not isinstance(url, str) or not url.strip():
            raise refused(f"config.bodyTemplate: gives {shortened(url)}, not an address.")
        return Reply(redirect_status(status), headers=headers, cookies=cookies, location=url)

    return make


def _stream(config: Config) -> Make:
    read = _topics_of(config)

    def make(
        visit: Visit, _status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        topics = read(visit)
        if not isinstance(topics, list) or not all(isinstance(each, str) for each in topics):
            raise refused(
                f"config.mqttTopicsTemplate: gives {shortened(topics)}, not a list of topics; "
                'give a JSON array such as ["barn/+"].'
            )
        try:
            check_topics(topics)
        except Invalid as problem:
            raise refused(f"config.mqttTopicsTemplate: {problem.message}") from None
        # A browser takes only 200 for an event stream.
        return Reply(200, headers=headers, cookies=cookies, topics=tuple(topics))

    return make


def _topics_of(config: Config) -> Callable[[Visit], Any]:
    """Reads what should be a list of topics."""
    given = config[_TOPICS]
    if isinstance(given, list) and given:
        readers = item_readers(config, _TOPICS)
        return lambda visit: [read(visit) for read in readers]
    template = None if isinstance(given, list) else template_of(config, _TOPICS)
    if template is not None:
        return lambda visit: _from_json(text_of_value(template.value(visit.payload, visit.run.now_ms)))
    path = path_of(config, _TOPICS_PATH)
    if path is None:
        raise Unusable(
            "config.mqttTopicsTemplate: is not set; give topics here, or a path in mqttTopicsPath."
        )
    return lambda visit: path.get(visit.payload)


def _from_json(text: str) -> Any:
    """The value of a text that is JSON, otherwise the text."""
    try:
        return computed(json_value, text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text
