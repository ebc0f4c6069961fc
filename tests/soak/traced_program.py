"""The command line of the server with a trace of its memory: run as a program, not imported.

Owns what it writes to a folder, `SOAK_TRACES`, at each SIGUSR1: a snapshot of what was allocated, and where, and how
many objects of each type were in reference cycles that nobody used any more. A traced server is slower and needs twice
the memory.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import tracemalloc
from collections import Counter
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Final

FRAMES: Final = 4
"""Of each place: the line that allocates, and who has called it."""


def write_snapshots(folder: Path) -> None:
    """Write `N.cycles` and the snapshot `N.trace`, whole, at the signal number N."""
    numbers = count()

    def write(_number: int, _frame: object) -> None:
        number = next(numbers)
        (folder / f"{number}.cycles").write_text(json.dumps(free_cycles()))
        draft = folder / "draft"
        tracemalloc.take_snapshot().dump(str(draft))
        draft.rename(folder / f"{number}.trace")

    signal.signal(signal.SIGUSR1, write)


def free_cycles() -> dict[str, int]:
    """Free all reference cycles, and count the objects in them by type."""
    gc.unfreeze()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    names = Counter(_name(each) for each in gc.garbage)
    gc.garbage.clear()
    gc.collect()
    return dict(names.most_common())


def _name(thing: object) -> str:
    """The name of a function or a class, the type of anything else."""
    if isinstance(thing, FunctionType | type):
        return f"{type(thing).__name__} {thing.__module__}.{thing.__qualname__}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


if __name__ == "__main__":
    tracemalloc.start(FRAMES)
    from trunkline.http.cli.main import main

    write_snapshots(Path(os.environ["SOAK_TRACES"]))
    main()
