"""The parts of a reply to a request, as the configuration of a node gives them: body, status, headers, cookies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.json_values import json_encoded
from trunkline.actors.core.formulas.paths import compile_path
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED, to_number
from trunkline.actors.engine.settings import (
    KEY,
    VALUE,
    ChoiceSetting,
    Config,
    LongMixedSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    Setting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    choice_of,
    list_of,
    path_of,
    shortened,
    template_of,
    text_of,
    text_of_value,
    text_reader,
)
from trunkline.actors.engine.visit import Visit, refused
from trunkline.actors.presentation.experience.replies import FRAMING_HEADERS, Cookie
from trunkline.actors.presentation.experience.terms import HEADER_NAME

HEADERS_MAX: Final = 100
"""Values of one header of a reply."""
BODY_TYPE: Final = ChoiceSetting("bodyTemplateType", "string", "path", "json", "payload", "none")
BODY: Final = LongMixedSetting("bodyTemplate")
_STATUS: Final = TemplateSetting("responseCodeTemplate")
_HEADERS: Final = RowsSetting("headerInfo", KEY, VALUE)
REPLY_ID_PATH: Final = PathSetting("replyIdPath")
ANSWERED: Final = "The call has an answer already; the first one counts, so this reply goes to nobody."
REPLY: Final[tuple[Setting, ...]] = (BODY_TYPE, BODY, _STATUS, _HEADERS)
"""The settings of a node that replies."""
_NAME: Final = TemplateSetting("nameTemplate")
_AGE: Final = NumberSetting("maxAgeTemplate")
_PATH: Final = TemplateSetting("pathTemplate")
COOKIES: Final = RowsSetting("cookieInfo", _NAME, VALUE, _AGE, _PATH)
SAME_SITE: Final = TemplateSetting("sameSiteTemplate")


def value_of(config: Config) -> Reader:
    """What the body is, before it is bytes; UNDEFINED for none."""
    kind = choice_of(config, BODY_TYPE)
    if kind == "none":
        return lambda _visit: UNDEFINED
    if kind == "payload":
        return lambda visit: visit.payload
    if kind == "path":
        path = path_of(config, BODY)
        return lambda visit: UNDEFINED if path is None else path.get(visit.payload)
    if kind == "string":
        return text_reader(config, BODY)
    template = template_of(config, BODY)

    def read(visit: Visit) -> Any:
        if template is None:
            return UNDEFINED
        try:
            return template.json(visit.payload, visit.run.now_ms)
        except EvaluationError as error:
            raise refused(f"config.bodyTemplate: {error}") from None

    return read


def bytes_of(value: Any) -> bytes:
    """The bytes of a body: a text as it is, other values as JSON."""
    if value is UNDEFINED or value is None:
        return b""
    return value.encode("utf-8", "replace") if isinstance(value, str) else computed(json_encoded, value)


def status_of(config: Config) -> Callable[[Visit], int]:
    """The status; 0 if it is none."""
    code = text_reader(config, _STATUS)

    def read(visit: Visit) -> int:
        number = to_number(code(visit))
        return int(number) if 200 <= number <= 599 and number == int(number) else 0

    return read


def headers_of(
    config: Config, taboo: frozenset[str] = FRAMING_HEADERS
) -> Callable[[Visit], tuple[tuple[str, str], ...]]:
    """The headers; those without a name are left out, and those that no reply has, which is noted."""
    pairs = [
        (text_reader(each, KEY), template_of(each, VALUE))
        for each in list_of(config, _HEADERS)
        if text_of(each, KEY)
    ]

    def read(visit: Visit) -> tuple[tuple[str, str], ...]:
        found = []
        for key, template in pairs:
            name = _checked_name(key(visit), "headerInfo")
            if name.lower() in taboo:
                visit.note(f"config.headerInfo: {name} is not sent: a reply does not set it. Leave it out.")
                continue
            value = "" if template is None else template.value(visit.payload, visit.run.now_ms)
            values = value if isinstance(value, list) else [value]
            if len(values) > HEADERS_MAX:
                raise refused(
                    f"config.headerInfo: {name} has {len(values)} values; give at most {HEADERS_MAX}."
                )
            found += [
                (name, text_of_value(each)) for each in values if each is not UNDEFINED and each is not None
            ]
        return tuple(found)

    return read


def cookies_of(config: Config) -> Callable[[Visit], tuple[Cookie, ...]]:
    """The cookies; those without a name are left out."""
    infos = [
        (
            text_reader(each, _NAME),
            text_reader(each, VALUE),
            text_reader(each, _AGE),
            text_reader(each, _PATH),
        )
        for each in list_of(config, COOKIES)
        if text_of(each, _NAME)
    ]
    same_site = text_reader(config, SAME_SITE)

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


def reply_id_of(config: Config) -> Callable[[Visit], str | None]:
    """The id of who waits for the reply; None, and a note, if there is none."""
    id_path, at = path_of(config, REPLY_ID_PATH) or compile_path("data.replyId"), _place(config)

    def read(visit: Visit) -> str | None:
        id = id_path.get(visit.payload)
        if isinstance(id, str) and id:
            return id
        visit.note(f"config.replyIdPath: there is no id at {at}, so the reply goes to nobody.")
        return None

    return read


def unheard_of(config: Config, nobody: str = "no call waits for a reply with") -> Callable[[Visit], None]:
    """Notes that nobody is there for the reply. In a dry run nobody ever is."""
    message = f"config.replyIdPath: {nobody} the id at {_place(config)}, so the reply goes to nobody."

    def note(visit: Visit) -> None:
        if visit.run.snapshots is None:
            visit.note(message)

    return note


def _place(config: Config) -> str:
    return text_of(config, REPLY_ID_PATH).strip() or "data.replyId"


def _checked_name(name: str, field: str) -> str:
    if not HEADER_NAME.fullmatch(name.strip()):
        raise refused(f"config.{field}: {shortened(name)} is not a valid name of a header or cookie.")
    return name.strip()
