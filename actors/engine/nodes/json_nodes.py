"""JsonDecodeNode and JsonEncodeNode: a text with JSON becomes a value, and a value becomes a text."""

from __future__ import annotations

from typing import Final

import msgspec

from trunkline.actors.core.formulas.json_values import json_encoded, json_value
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import ERROR_BEHAVIOR, ERROR_PATH, Config, PathSetting, TextSetting
from trunkline.actors.engine.tools import error_path, needed_path, path_of
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_SOURCE: Final = PathSetting("source", is_needed=True)
_DESTINATION: Final = PathSetting("destination")
_UNUSED: Final = (TextSetting("errorBehavior", is_shown=False), TextSetting("errorPath", is_shown=False))
"""Exports of encoding nodes have these, but all values can be encoded."""


def _decode(config: Config) -> NodeStep:
    source = needed_path(config, _SOURCE)
    destination = path_of(config, _DESTINATION) or source
    problem_path = error_path(config)

    def step(visit: Visit) -> int:
        text = source.get(visit.payload)
        try:
            if not isinstance(text, str):
                raise refused("config.source: leads to no text, so there is no JSON to decode.")
            value = computed(json_value, text)
        except (msgspec.DecodeError, RecursionError) as error:
            if problem_path is None:
                raise refused(f"config.source: the text is not valid JSON: {error}.") from None
            visit.put(
                problem_path, {"name": "ValidationError", "message": f"The text is not valid JSON: {error}."}
            )
            return 0
        visit.put(destination, value)
        return 0

    return step


def _encode(config: Config) -> NodeStep:
    source = needed_path(config, _SOURCE)
    destination = path_of(config, _DESTINATION) or source

    def step(visit: Visit) -> int:
        value = source.get(visit.payload)
        if value is not UNDEFINED:
            visit.put(destination, computed(json_encoded, value).decode())
        return 0

    return step


TYPES: Final[dict[str, NodeType]] = {
    "JsonDecodeNode": NodeType(_decode, Form("data", (_SOURCE, _DESTINATION, ERROR_BEHAVIOR, ERROR_PATH))),
    "JsonEncodeNode": NodeType(_encode, Form("data", (_SOURCE, _DESTINATION, *_UNUSED))),
}
