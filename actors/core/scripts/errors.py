"""The error of a script, which ends the run of its workflow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from trunkline.actors.core.scripts.protocol import Failure, LogLine

TYPE_ERROR: Final = "FunctionNodeTypeError"
"""The result is nothing that JSON has."""
TOO_LARGE: Final = "PayloadTooLarge"
TIMEOUT: Final = "ScriptTimeout"
CRASHED: Final = "ScriptCrashed"
"""The process of the script ended. Other scripts are not affected."""

_PLACE: Final = re.compile(r"<input>:(\d{1,9})")


class ScriptError(Exception):
    """A script threw an error, exceeded a bound, or has no valid result.

    `name` and `message` are those of JavaScript for what the script threw. `line` counts from 1 and is None where no
    line is known. `logs` is what the script wrote to the console before.
    """

    def __init__(self, failure: Failure, logs: Sequence[LogLine] = ()) -> None:
        super().__init__(f"{failure.name}: {failure.message}")
        self.name = failure.name
        self.message = failure.message
        self.stack, self.line = _of_script(failure.stack)
        self.logs = tuple(logs)


def _of_script(stack: str) -> tuple[str, int | None]:
    """The lines of a stack that are about the script, and the first line of the script in it.

    The script begins in the second line of what is compiled; all of the prelude is in the first (`prelude.js`).
    """
    kept: list[str] = []
    first: int | None = None
    for each in stack.splitlines():
        place = _PLACE.search(each)
        if place is None:
            kept.append(each)
        elif (line := int(place[1]) - 1) > 0:
            first = line if first is None else first
            kept.append(f"{each[: place.start()]}script:{line}{each[place.end() :]}")
    return "\n".join(kept), first
