"""JsonDecodeNode and JsonEncodeNode: a text with JSON becomes a value, and a value becomes a text."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trunkline.actors.core.formulas.json_values import json_encoded, json_value
from trunkline.actors.core.formulas.price import computed
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.tools import choice_of, needed_path, path_of
from trunkline.actors.engine.visit import NodeStep, Prepare, Visit, refused


def _decode(config: dict[str, Any]) -> NodeStep:
    source = needed_path(config, "source")
    destination = path_of(config, "destination") or source
    throws = choice_of(config, "errorBehavior", ("throw", "payloadPath")) == "throw"
    problem_path = None if throws else needed_path(config, "errorPath")

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


def _encode(config: dict[str, Any]) -> NodeStep:
    source = needed_path(config, "source")
    destination = path_of(config, "destination") or source

    def step(visit: Visit) -> int:
        value = source.get(visit.payload)
        if value is not UNDEFINED:
            visit.put(destination, computed(json_encoded, value).decode())
        return 0

    return step


TYPES: Final[dict[str, Prepare]] = {"JsonDecodeNode": _decode, "JsonEncodeNode": _encode}
