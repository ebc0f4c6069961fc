"""The parts of a reply to a request, as the configuration of a node gives them: body, status, headers, cookies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.json_values import json_encoded
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED, to_number
from trunkline.actors.engine.tools import (
    Config,
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
from trunkline.actors.presentation.experience.replies import Cookie
from trunkline.actors.presentation.experience.terms import HEADER_NAME

HEADERS_MAX: Final = 100
"""Values of one header of a reply."""
BODY_TYPES: Final = ("string", "path", "json", "payload", "none")


def value_of(config: Config) -> Reader:
    """What the body is, before it is bytes; UNDEFINED for none."""
    kind = choice_of(config, "bodyTemplateType", BODY_TYPES)
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


def bytes_of(value: Any) -> bytes:
    """The bytes of a body: a text as it is, other values as JSON."""
    if value is UNDEFINED or value is None:
        return b""
    return value.encode("utf-8", "replace") if isinstance(value, str) else computed(json_encoded, value)


def status_of(config: Config) -> Callable[[Visit], int]:
    """The status; 0 if it is none."""
    code = text_reader(config, "responseCodeTemplate")

    def read(visit: Visit) -> int:
        number = to_number(code(visit))
        return int(number) if 200 <= number <= 599 and number == int(number) else 0

    return read


def headers_of(config: Config) -> Callable[[Visit], tuple[tuple[str, str], ...]]:
    """The headers; those without a name are left out."""
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
        raise refused(f"config.{field}: {shortened(name)} is not a valid name of a header or cookie.")
    return name.strip()
