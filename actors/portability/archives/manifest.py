"""The manifest of an archive: what lies where, as JSON lines beside the files.

Each day, and each complete archive of data tables or events, has a manifest of its own. Its lines are in the order of
the paths. When a day is archived again, lines of files that are not written again stay, since their files stay as
well: what is in an archive is never lost because the server has removed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Final, Literal, NamedTuple

import msgspec

from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import Id, IsoTime

MANIFESTS: Final = "manifests"
OWN_FOLDERS: Final = frozenset({MANIFESTS, "devices", "events", "dataTables", "allEvents", "exports"})
"""The folders in the directory of an archive."""

What = Literal["states", "commands", "connections", "events", "rows", "application"]


class Entry(View, frozen=True):
    """A file of an archive: a line of its manifest. `rows` are lines of a bundle in an export of the application."""

    path: str
    what: What
    day: str
    rows: int
    bytes: int
    sha256: str
    written: IsoTime
    columns: list[dict[str, str]]
    device_id: Id | None = None
    data_table_id: Id | None = None
    name: str | None = None


class _Line(NamedTuple):
    path: str
    is_old: bool
    raw: bytes


_DECODER = msgspec.json.Decoder(Entry)


def line(entry: Entry) -> bytes:
    """The line of a file."""
    return msgspec.json.encode(entry) + b"\n"


def entry_of(raw: bytes) -> Entry:
    """Read a line. Raises `msgspec.DecodeError`."""
    return _DECODER.decode(raw)


def merged(old: Iterator[bytes], new: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of both manifests, in the order of their paths; a new line replaces an old one."""
    before: str | None = None
    for path, _, raw in merge(_keyed(new, is_old=False), _keyed(old, is_old=True)):
        if path != before:
            yield raw
        before = path


def _keyed(lines: Iterator[bytes], *, is_old: bool) -> Iterator[_Line]:
    for raw in lines:
        yield _Line(entry_of(raw).path, is_old, raw)


def lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The complete lines of a text that comes in pieces."""
    rest = b""
    for piece in chain(pieces, [b""]):
        *lines, rest = (rest + piece).split(b"\n")
        for each in lines:
            yield each + b"\n"
