"""LoopNode and LoopCapNode: run the body of a loop for each item of an array, a text, a number or an object.

Output 0 is after the loop, output 1 the body. A serial body works on the payload of the loop, one pass after the
other; what it changes stays only if it ends with a cap. A parallel body gets a copy, and keeps no changes. What caps
map is collected in the order of the items.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import trio

from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import copied_value, size_in_bytes
from trunkline.actors.engine.tools import needed_path, path_of, text_of
from trunkline.actors.engine.visit import END, Capped, NodeStep, Prepare, Visit
from trunkline.actors.formulas.values import UNDEFINED

COPIED_BYTES_MAX: Final = 256 * 1024 * 1024
"""Each pass has a copy of the payload: so many bytes of all passes together."""

_BODY: Final = 1


def _loop(config: dict[str, Any]) -> NodeStep:
    source, current = needed_path(config, "loopSourcePath"), path_of(config, "currentItemPath")
    mapped_path = path_of(config, "mapResultPath")
    is_parallel = config.get("parallel") is True

    async def run(visit: Visit, items: Iterator[tuple[Any, Any]], count: int) -> int:
        mapped: list[Any] = []
        last, most = count - 1, visit.run.bounds.payload_bytes
        mapped_bytes = copied_bytes = 0
        for index, (key, value) in enumerate(items):
            copied_bytes += await size_in_bytes(visit.payload, most)
            if copied_bytes > COPIED_BYTES_MAX:
                raise NodeError(
                    "TooMuchWork", f"The passes of a loop copy at most {COPIED_BYTES_MAX} bytes in all."
                )
            payload = await copied_value(visit.payload)
            await trio.lowlevel.checkpoint()
            if current is not None:
                item = {
                    "value": await copied_value(value),
                    "index": index,
                    "key": key,
                    "first": index == 0,
                    "last": index == last,
                }
                payload = current.set(payload, item)
            capped = await visit.walk(visit, _BODY, payload)
            if capped is None:
                continue
            if not is_parallel:
                visit.payload = capped.payload
            if capped.value is not UNDEFINED:
                mapped_bytes += await size_in_bytes(capped.value, most)
                if mapped_bytes > most:
                    raise NodeError(
                        "PayloadTooLarge", f"config.mapValuePath: the values have more than {most} bytes."
                    )
                mapped.append(await copied_value(capped.value))
            if capped.is_break:
                break
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


def _count(value: Any) -> int:
    """How many items a loop runs over. What is beyond the numbers is one too many."""
    if isinstance(value, list | str | dict):
        return len(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0
    return max(0, int(min(value, sys.maxsize)))


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    """The items of what a loop runs over, with their keys."""
    if isinstance(value, list | str):
        yield from enumerate(value)
    elif isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from ((index, index) for index in range(_count(value)))


def _cap(config: dict[str, Any]) -> NodeStep:
    mapped_path = path_of(config, "mapValuePath")
    is_break = config.get("shouldBreak") is True or text_of(config, "shouldBreak") == "true"

    def step(visit: Visit) -> int:
        value = UNDEFINED if mapped_path is None else mapped_path.get(visit.payload)
        visit.capped = Capped(is_break, value, visit.payload)
        return END

    return step


TYPES: Final[dict[str, Prepare]] = {"LoopNode": _loop, "LoopCapNode": _cap}
