"""EndpointReplyNode: answers a request to an endpoint of an experience with a text, a page, or a redirection.

The first answer to a request counts. Without an id at `replyIdPath` (by default `data.replyId`), or if nobody waits for
it any more, the node does nothing. A status that is none counts as 200, for a redirection as 302.

`bodyTemplateType` says what the body is, or for a page what it calls `pageData`: `string` (the default), `path`,
`json`, `payload` (all of it), or `none`. For a page a text that is JSON counts as its value. A value that is no text is
sent as JSON. `headerInfo` and `cookieInfo` have templates for names and values, and those without a name are left out;
a header whose template is the path of an array is sent once for each item. A cookie without a value is removed;
`maxAgeTemplate` is in milliseconds. The reply type `mqtt`, a stream of messages, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from trunkline.actors.engine.copies import copied
from trunkline.actors.engine.tools import (
    Config,
    Reader,
    Unusable,
    choice_of,
    list_of,
    needed_template,
    needed_text_reader,
    path_of,
    shortened,
    template_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.experience.replies import Cookie, Page, Reply, redirect_status, waiting_key
from trunkline.actors.experience.terms import HEADER_NAME
from trunkline.actors.formulas.errors import EvaluationError
from trunkline.actors.formulas.paths import compile_path
from trunkline.actors.formulas.values import UNDEFINED, to_number, to_text
from trunkline.actors.triggers.replies import Replies

TYPE: Final = "EndpointReplyNode"

_BODY_TYPES: Final = ("string", "path", "json", "payload", "none")
_REPLY_TYPES: Final = ("custom", "page", "redirect", "mqtt")

Make = Callable[[Visit, int, tuple[tuple[str, str], ...], tuple[Cookie, ...]], Reply]


def prepare(config: Config) -> NodeStep:
    kind = choice_of(config, "replyType", _REPLY_TYPES)
    if kind == "mqtt":
        raise Unusable(
            "config.replyType: this server does not answer requests with a stream of MQTT messages; "
            "give custom, page or redirect."
        )
    id_path = path_of(config, "replyIdPath") or compile_path("data.replyId")
    status, headers, cookies = _status(config), _headers(config), _cookies(config)
    make = {"custom": _custom, "page": _page, "redirect": _redirect}[kind](config)

    def step(visit: Visit) -> int:
        id = id_path.get(visit.payload)
        if not isinstance(id, str) or not id:
            return 0
        reply = make(visit, status(visit), headers(visit), cookies(visit))
        world = visit.run.world
        if world is not None:
            replies, key = world.system.component(Replies), waiting_key(world.application, id)
            if replies.is_expected(key):
                world.effect("answers a request")
                replies.reply(key, reply)
        return 0

    return step


def _custom(config: Config) -> Make:
    value = _value(config)

    def make(
        visit: Visit, status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        return Reply(status or 200, _bytes(value(visit)), headers, cookies)

    return make


def _page(config: Config) -> Make:
    id, layout = needed_text_reader(config, "pageIdTemplate"), text_reader(config, "layoutIdTemplate")
    version, value = text_of(config, "experienceVersion"), _value(config)
    may_be_json = choice_of(config, "bodyTemplateType", _BODY_TYPES) == "string"

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
            data if data is UNDEFINED else copied(data),
            flow,
            version,
        )
        return Reply(status or 200, headers=headers, cookies=cookies, page=page)

    return make


def _redirect(config: Config) -> Make:
    needed_template(config, "bodyTemplate")
    value = _value(config)

    def make(
        visit: Visit, status: int, headers: tuple[tuple[str, str], ...], cookies: tuple[Cookie, ...]
    ) -> Reply:
        url = value(visit)
        if not isinstance(url, str) or not url.strip():
            raise refused(f"config.bodyTemplate: gives {shortened(url)}, not an address.")
        return Reply(redirect_status(status), headers=headers, cookies=cookies, location=url)

    return make


# The parts of a reply.


def _value(config: Config) -> Reader:
    """What the body is, before it is bytes; UNDEFINED for none."""
    kind = choice_of(config, "bodyTemplateType", _BODY_TYPES)
    if kind == "none":
        return lambda _visit: UNDEFINED
    if kind == "payload":
        return lambda visit: visit.payload
    if kind == "path":
        path = path_of(config, "bodyTemplate")
        return lambda visit: UNDEFINED if path is None else path.get(visit.payload)
    if kind == "string":
        return text_reader(config, "bodyTemplate")
    template = template_of(config, "bodyTemplate")

    def read(visit: Visit) -> Any:
        if template is None:
            return UNDEFINED
        try:
            return template.json(visit.payload, visit.run.now_ms)
        except EvaluationError as error:
            raise refused(f"config.bodyTemplate: {error}") from None

    return read


def _bytes(value: Any) -> bytes:
    if value is UNDEFINED or value is None:
        return b""
    return value.encode("utf-8", "replace") if isinstance(value, str) else msgspec.json.encode(value)


def _from_json(text: str) -> Any:
    """The value of a text that is JSON, otherwise the text."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return text


def _status(config: Config) -> Callable[[Visit], int]:
    """The status; 0 if it is none."""
    code = text_reader(config, "responseCodeTemplate")

    def read(visit: Visit) -> int:
        number = to_number(code(visit))
        return int(number) if 200 <= number <= 599 and number == int(number) else 0

    return read


def _headers(config: Config) -> Callable[[Visit], tuple[tuple[str, str], ...]]:
    pairs = [
        (text_reader(each, "keyTemplate"), template_of(each, "valueTemplate"))
        for each in list_of(config, "headerInfo")
        if text_of(each, "keyTemplate")
    ]

    def read(visit: Visit) -> tuple[tuple[str, str], ...]:
        found = []
        for key, template in pairs:
            name = _checked_name(key(visit), "headerInfo")
            value = "" if template is None else template.value(visit.payload, visit.run.now_ms)
            values = value if isinstance(value, list) else [value]
            found += [(name, to_text(each)) for each in values if each is not UNDEFINED and each is not None]
        return tuple(found)

    return read


def _cookies(config: Config) -> Callable[[Visit], tuple[Cookie, ...]]:
    infos = [
        (
            text_reader(each, "nameTemplate"),
            text_reader(each, "valueTemplate"),
            text_reader(each, "maxAgeTemplate"),
            text_reader(each, "pathTemplate"),
        )
        for each in list_of(config, "cookieInfo")
        if text_of(each, "nameTemplate")
    ]
    same_site = text_reader(config, "sameSiteTemplate")

    def read(visit: Visit) -> tuple[Cookie, ...]:
        found = []
        for name, value, age, path in infos:
            age_text = age(visit).strip()
            age_ms = to_number(age_text) if age_text else None
            if age_ms is not None and not math.isfinite(age_ms):
                raise refused(
                    f"config.cookieInfo: maxAgeTemplate gives {shortened(age_text)}, not milliseconds."
                )
            key = _checked_name(name(visit), "cookieInfo")
            found.append(Cookie(key, value(visit), age_ms, path(visit).strip(), same_site(visit).strip()))
        return tuple(found)

    return read


def _checked_name(name: str, field: str) -> str:
    if not HEADER_NAME.fullmatch(name.strip()):
        raise refused(f"config.{field}: {shortened(name)} is no name of a header or cookie.")
    return name.strip()
