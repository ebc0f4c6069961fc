"""What a process that has ended left half written, and a start removes.

Owns which of it is removed. Where one process has the data directory, nothing is being written at its start, so all of
it goes. The owners of several partitions write into the same folders, and one of them may start again while the others
go on: then only what nobody has written to for a day goes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

SHARED_LEFT_S: Final = 86_400.0
"""An upload that does not go on ends much sooner."""


def remove_left(paths: Iterable[Path], left_s: float) -> None:
    """Remove the files that were not written to for `left_s` seconds; all of them if it is 0. Raises OSError."""
    now_s = time.time()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # another process has just finished it
            if not left_s or now_s - path.stat().st_mtime > left_s:
                path.unlink()
