"""LoopNode and LoopCapNode: run the body of a loop for each item of an array, a text, a number or an object.

Output 0 is after the loop, output 1 the body. A number runs the body as often as its absolute value, rounded up. A
serial body works on the payload of the loop, one pass after the other; what it changes stays only if it ends with a
cap. A `parallel` body gets a copy, and keeps no changes; a break does not end it, and where passes fail, all passes are
run before the first error fails the run.

`mapResultPath` gets an array with the value of each pass, in the order of the items: that at `mapValuePath` of the cap
of the pass, else at `mapValuePath` of the loop, else at `currentItemPath`; null for a pass that reaches no cap.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any, Final

import trio

from trunkline.actors.core.formulas.paths import Path
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.heavy_work import copied_value, size_in_bytes
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import Config, FlagSetting, PathSetting, TemplateSetting
from trunkline.actors.engine.tools import is_on, needed_path, path_of, text_of
from trunkline.actors.engine.visit import END, Capped, NodeStep, Visit

_LOOP_SOURCE_PATH: Final = PathSetting("loopSourcePath", is_needed=True)
_CURRENT_ITEM_PATH: Final = PathSetting("currentItemPath")
_PARALLEL: Final = FlagSetting("parallel")
_MAP_RESULT_PATH: Final = PathSetting("mapResultPath")
_MAP_VALUE_PATH: Final = PathSetting("mapValuePath")
_SHOULD_BREAK: Final = FlagSetting("shouldBreak")
_LOOP_NODE_ID: Final = TemplateSetting("loopNodeId", is_shown=False)

COPIED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Each pass has a copy of the payload: so many bytes of all passes together."""

_BODY: Final = 1
_ENDS_RUN: Final = frozenset({"RunTimeout", "TooManySteps", "TooMuchWork"})
"""Errors that every further pass would have as well."""


def _loop(config: Config) -> NodeStep:
    source, current = needed_path(config, _LOOP_SOURCE_PATH), path_of(config, _CURRENT_ITEM_PATH)
    mapped_path, value_path = path_of(config, _MAP_RESULT_PATH), path_of(config, _MAP_VALUE_PATH) or current
    is_parallel = is_on(config, _PARALLEL)

    async def run(visit: Visit, items: Iterator[tuple[Any, dict[str, Any]]], count: int) -> int:
        mapped: list[Any] = []
        failed: RunFailed | None = None
        last, most = count - 1, visit.run.bounds.payload_bytes
        mapped_bytes = copied_bytes = 0
        for index, (value, more) in enumerate(items):
            copied_bytes += await size_in_bytes(visit.payload, most)
            if copied_bytes > COPIED_BYTES_MAX:
                raise NodeError(
                    "TooMuchWork", f"The passes of a loop copy at most {COPIED_BYTES_MAX} bytes in all."
                )
            payload = await copied_value(visit.payload)
            await trio.lowlevel.checkpoint()
            if current is not None:
                item = {"value": await copied_value(value), "index": index, **more}
                payload = current.set(payload, {**item, "first": index == 0, "last": index == last})
            try:
                capped = await visit.walk(visit, _BODY, payload)
            except RunFailed as error:
                if not is_parallel or error.error.name in _ENDS_RUN:
                    raise
                failed = failed or error
                continue
            if mapped_path is not None:
                taken = _mapped(capped, value_path)
                mapped_bytes += await size_in_bytes(taken, most)
                if mapped_bytes > most:
                    raise NodeError(
                        "PayloadTooLarge", f"config.mapValuePath: the values have more than {most} bytes."
                    )
                mapped.append(await copied_value(taken))
            if capped is not None and not is_parallel:
                visit.payload = capped.payload
                if capped.is_break:
                    break
        if failed is not None:
            raise failed
        visit.put(mapped_path, mapped)
        return 0

    def step(visit: Visit) -> Any:
        given = source.get(visit.payload)
        count, most = _count(given), visit.run.bounds.loop_items
        if count > most:
            raise NodeError(
                "TooManyItems", f"config.loopSourcePath: {count} items; a loop has at most {most}."
            )
        return run(visit, _items(given), count)

    return step


def _mapped(capped: Capped | None, path: Path | None) -> Any:
    """The value of a pass, null for none."""
    if capped is None:
        return None
    value = capped.value if capped.names_value or path is None else path.get(capped.payload)
    return None if value is UNDEFINED else value


def _count(value: Any) -> int:
    """How many items a loop runs over. What is beyond the numbers is one too many."""
    if isinstance(value, list | str | dict):
        return len(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
        return 0
    return math.ceil(min(abs(value), sys.maxsize))


def _items(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The items of what a loop runs over; those of an object with their keys."""
    if isinstance(value, list | str):
        yield from ((each, {}) for each in value)
    elif isinstance(value, dict):
        yield from ((each, {"key": key}) for key, each in value.items())
    else:
        yield from ((index, {}) for index in range(_count(value)))


def _cap(config: Config) -> NodeStep:
    mapped_path = path_of(config, _MAP_VALUE_PATH)
    is_break = is_on(config, _SHOULD_BREAK) or text_of(config, _SHOULD_BREAK) == "true"

    def step(visit: Visit) -> int:
        value = UNDEFINED if mapped_path is None else mapped_path.get(visit.payload)
        visit.capped = Capped(is_break, value, visit.payload, names_value=mapped_path is not None)
        return END

    return step


TYPES: Final[dict[str, NodeType]] = {
    "LoopNode": NodeType(
        _loop,
        Form("logic", (_LOOP_SOURCE_PATH, _CURRENT_ITEM_PATH, _PARALLEL, _MAP_RESULT_PATH, _MAP_VALUE_PATH)),
    ),
    "LoopCapNode": NodeType(_cap, Form("logic", (_MAP_VALUE_PATH, _SHOULD_BREAK, _LOOP_NODE_ID))),
}
