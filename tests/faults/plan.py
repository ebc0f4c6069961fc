"""The plan of a file system that fails: which calls on which files fail, how and how often, and what was called.

Owns the library that is preloaded into a server (`shim.c`, built once for each process of the tests) and the file that
it maps, which has the same layout here. Rules are set and lifted while the server runs. Does not own the server.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

COMPILER: Final = shutil.which("cc")
"""None: nothing of this can run on this machine."""

WRITE, SYNC, TRUNCATE, ALLOCATE, OPEN, READ, RENAME, MKDIR, UNLINK, MAP = (1 << bit for bit in range(10))
NAMES: Final = {
    WRITE: "write",
    SYNC: "sync",
    TRUNCATE: "truncate",
    ALLOCATE: "allocate",
    OPEN: "open",
    READ: "read",
    RENAME: "rename",
    MKDIR: "mkdir",
    UNLINK: "unlink",
    MAP: "map",
}
ANY: Final = sum(NAMES)

_VERSION: Final = 2
_RULES: Final = 8
_NOTES: Final = 16384
_PATH: Final = 512


class _Rule(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("calls", "error", "part", "done", "kills", "awaits")),
        *((name, ctypes.c_int64) for name in ("after", "times", "delay_ms", "seen", "struck")),
        ("name", ctypes.c_char * 64),
    ]


class _Note(ctypes.Structure):
    _fields_ = [("call", ctypes.c_int32), ("path", ctypes.c_char * 60)]


class _Layout(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("version", "clock_ms", "rules", "noted")),
        ("prefix", ctypes.c_char * _PATH),
        ("rule", _Rule * _RULES),
        ("note", _Note * _NOTES),
    ]


class Fault(NamedTuple):
    """Calls of the kinds `calls` on files with `name` in their path, after the first `after`, so many `times`.

    They take `delay_ms` longer; then they fail with `error`, without having done anything or, `done`, although they
    have; or they move `part` bytes at most. With `kills` the process ends there, as by kill -9: before the call, or
    after it if it is to be `done` or moves a `part`. Calls count from the first one of the kinds `awaits` on, if there
    are any. `times` -1: for ever.
    """

    calls: int
    error: int = 0
    name: str = ""
    after: int = 0
    times: int = -1
    part: int = -1
    done: bool = False
    delay_ms: int = 0
    kills: bool = False
    awaits: int = 0


class Call(NamedTuple):
    """A call that was made: its kind, and the path of the file below the prefix."""

    kind: int
    path: str

    def __str__(self) -> str:
        return f"{NAMES[self.kind]} {self.path}"


class Plan:
    """The plan in `file`, for what lies below `prefix`."""

    def __init__(self, file: Path, prefix: Path) -> None:
        self.file = file
        with file.open("w+b") as opened:
            opened.truncate(ctypes.sizeof(_Layout))
            self._layout = _Layout.from_buffer(mmap.mmap(opened.fileno(), ctypes.sizeof(_Layout)))
        self._layout.version = _VERSION
        self._layout.prefix = str(prefix.resolve()).encode()

    def set(self, *faults: Fault) -> None:
        """Let these faults happen from now on, and no others."""
        self._layout.rules = 0
        for number, fault in enumerate(faults):
            rule = self._layout.rule[number]
            ctypes.memset(ctypes.addressof(rule), 0, ctypes.sizeof(rule))
            for name, given in fault._asdict().items():
                setattr(rule, name, given.encode() if isinstance(given, str) else given)
        self._layout.rules = len(faults)

    def lift(self) -> None:
        """Let nothing fail from now on."""
        self._layout.rules = 0

    @contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        """These faults, for a while."""
        self.set(*faults)
        try:
            yield
        finally:
            self.lift()

    def struck(self, number: int = 0) -> int:
        """How many calls a fault has hit."""
        return int(self._layout.rule[number].struck)

    def set_clock(self, ahead_s: int) -> None:
        """Set the wall clock of the server so far ahead of that of the machine, or behind it."""
        self._layout.clock_ms = ahead_s * 1000

    def forget(self) -> None:
        """Begin the calls anew."""
        self._layout.noted = 0

    def calls(self) -> list[Call]:
        """The calls since then, in their order."""
        count = self._layout.noted
        assert count <= _NOTES, "more calls than are noted"
        return [Call(note.call, note.path.decode(errors="replace")) for note in self._layout.note[:count]]

    @property
    def variables(self) -> dict[str, str]:
        """What a server that is preloaded with the library needs in its environment."""
        return {"FAULT_PLAN": str(self.file)}


@cache
def library() -> str:
    """The path of the library, built for this process and removed at its end: servers have loaded it by then."""
    assert COMPILER is not None
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    command = [
        COMPILER,
        "-shared",
        "-fPIC",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(built),
        str(source),
    ]
    subprocess.run(command, check=True)
    return str(built)
