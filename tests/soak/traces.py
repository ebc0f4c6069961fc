"""What of a server's memory grows: two snapshots of a traced server (`traced_program.py`), compared.

Owns asking for the snapshots and the table of places. Does not own the server.
"""

from __future__ import annotations

import json
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from tests.e2e.server_process import ServerProcess
from tests.patience import PATIENCE_S

PROGRAM: Final = (str(Path(__file__).with_name("traced_program.py")),)
PLACES_MAX: Final = 25
LOOK_S: Final = 0.1


class Traces:
    """The snapshots of one server, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    @property
    def env(self) -> dict[str, str]:
        """What the traced program needs to know."""
        return {"SOAK_TRACES": str(self._folder)}

    async def take(self, server: ServerProcess) -> None:
        """Let the server write a snapshot, and wait for it."""
        path = self._folder / f"{self._count}.trace"
        self._count += 1
        server.send_signal(signal.SIGUSR1)
        with trio.fail_after(PATIENCE_S):
            while not await trio.Path(path).exists():  # noqa: ASYNC110 - a file has no event
                await trio.sleep(LOOK_S)

    def growth(self) -> Iterator[str]:
        """The places that have grown most from the first snapshot to the last."""
        yield "objects in unused reference cycles since the first snapshot:"
        cycles = json.loads((self._folder / f"{self._count - 1}.cycles").read_text())
        yield from (f"{count:8,} {name}" for name, count in list(cycles.items())[:PLACES_MAX])
        first, last = (
            tracemalloc.Snapshot.load(str(self._folder / f"{number}.trace"))
            for number in (0, self._count - 1)
        )
        sizes = [sum(trace.size for trace in each.traces) for each in (first, last)]
        yield f"Python held {sizes[0]:,} bytes at the first snapshot and {sizes[1]:,} at the last"
        for each in last.compare_to(first, "traceback")[:PLACES_MAX]:
            yield f"{each.size_diff:+,} bytes in {each.count_diff:+,} blocks, of {each.size:,}"
            yield from each.traceback.format()
