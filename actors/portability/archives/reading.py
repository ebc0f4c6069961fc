"""Reading an archive back: whether its files are what was written, and what a device reported.

Works on a folder with the files of one or more archives, such as the folder of the operator, a part of it, or a copy of
a bucket. Needs no server and no data directory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import msgspec

from trunkline.actors.core.contents.downloads import PIECE_BYTES
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import SECONDS_BELOW, iso
from trunkline.actors.platform.applications.archive_days import day_number, day_text
from trunkline.actors.portability.archives.manifest import MANIFESTS, OWN_FOLDERS, Entry, entry_of
from trunkline.limits.extras import how_to_install, library_missing
from trunkline.limits.table import DAY_MS

DAY_MAX: Final = day_number("9999-12-31")
_STATE_COLUMNS: Final = 3
"""The columns of a state before its attributes."""

_FIELD: Final = re.compile(rb'(?:"((?:[^"]|"")*)"|([^,"\r\n]*))(,|\r\n)')


class Listed(NamedTuple):
    """A line of a manifest, and the file that it is about."""

    entry: Entry
    file: Path


class Checked(NamedTuple):
    """The numbers of manifests, files and bytes that were verified."""

    manifests: int = 0
    files: int = 0
    bytes: int = 0


def check_archive(folder: Path, report: Callable[[str], None]) -> Checked:
    """Verify all files that the manifests list. Calls `report` with a sentence for each problem."""
    manifests, files, size = 0, 0, 0
    for root in _archives(folder):
        for path in sorted((root / MANIFESTS).rglob("*.jsonl")):
            manifests += 1
            try:
                for entry, file in _listed(root, path):
                    problem = _problem(entry, file)
                    if problem is not None:
                        report(f"{file}: {problem}")
                    files, size = files + 1, size + entry.bytes
            except Invalid as failure:
                report(failure.message)
    return Checked(manifests, files, size)


def read_device(
    folder: Path,
    device: str,
    what: Literal["states", "commands", "connections"],
    start_ms: int,
    end_ms: int,
) -> Iterator[dict[str, Any]]:
    """Yield what a device reported, from `start_ms` to `end_ms` (both included), day by day.

    A state is as the API takes it: `time`, `data`, and `meta` and `flowVersion` where it has them. Other entries have
    the names of their columns. Raises `Invalid` for a file that is not what was written, before its first entry.
    """
    first, last = (day_text(min(time_ms // DAY_MS, DAY_MAX)) for time_ms in (start_ms, end_ms))
    for root in _archives(folder):
        for path in sorted((root / MANIFESTS / "days").rglob("*.jsonl")):
            if not first <= path.stem <= last:
                continue
            for entry, file in _listed(root, path):
                if entry.device_id == device and entry.what == what:
                    yield from _read(entry, file, start_ms, end_ms)


def _read(entry: Entry, file: Path, start_ms: int, end_ms: int) -> Iterator[dict[str, Any]]:
    problem = _problem(entry, file)
    if problem is not None:
        raise Invalid(f"{file}: {problem}")
    for row in _rows(entry, file):
        if start_ms <= row[1] <= end_ms:
            yield _state(entry, row) if entry.what == "states" else _entry(entry, row)


def _archives(folder: Path) -> list[Path]:
    """The archives in a folder: it may be one, and have others in it."""
    if not folder.is_dir():
        raise Invalid(f"{folder}: is not a folder; name one with an archive.")
    found: list[Path] = []
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        inner = {each.name: each for each in path.iterdir() if each.is_dir() and not each.is_symlink()}
        if MANIFESTS in inner:
            found.append(path)
            # Its own folders may have millions of files.
            inner = {name: each for name, each in inner.items() if name not in OWN_FOLDERS}
        waiting += inner.values()
    if not found:
        raise Invalid(f"{folder}: has no archive, since there are no manifests in it.")
    return sorted(found)


def _listed(root: Path, manifest: Path) -> Iterator[Listed]:
    """Yield the lines of a manifest. Raises `Invalid` for one that cannot be read."""
    try:
        with manifest.open("rb") as lines:
            for raw in lines:
                entry = entry_of(raw)
                file = root / entry.path
                if not file.resolve().is_relative_to(root.resolve()):
                    raise Invalid(f"{manifest}: the path {entry.path!r} leads out of the archive.")
                yield Listed(entry, file)
    except (msgspec.MsgspecError, OSError) as failure:
        raise Invalid(f"{manifest}: cannot be read: {failure}") from failure


def _problem(entry: Entry, file: Path) -> str | None:
    """A sentence if a file is not what was written."""
    try:
        size = file.stat().st_size
        if size != entry.bytes:
            return f"has {size} bytes, and {entry.bytes} were written."
        hash = hashlib.sha256()
        with file.open("rb") as content:
            while piece := content.read(PIECE_BYTES):
                hash.update(piece)
    except FileNotFoundError:
        return "is missing."
    except OSError as failure:
        return f"cannot be read: {failure}"
    return None if hash.hexdigest() == entry.sha256 else "is not what was written; its hash is another one."


# Entries.


def _state(entry: Entry, row: list[Any]) -> dict[str, Any]:
    names = [column["name"] for column in entry.columns]
    attributes = zip(names[_STATE_COLUMNS:-2], row[_STATE_COLUMNS:-2], strict=True)
    state = {
        "time": row[1],
        "data": {name.removeprefix("$"): value for name, value in attributes if value is not None},
    }
    meta, flow_version = row[-2:]
    if meta is not None:
        state["meta"] = msgspec.json.decode(meta)
    if flow_version is not None:
        state["flowVersion"] = flow_version
    return state


def _entry(entry: Entry, row: list[Any]) -> dict[str, Any]:
    return {
        column["name"]: msgspec.json.decode(value) if column["dataType"] == "json" else value
        for column, value in zip(entry.columns, row, strict=True)
        if value is not None
    }


def _rows(entry: Entry, file: Path) -> Iterator[list[Any]]:
    """Yield the rows of a file, with the values in the types of their columns; JSON stays text."""
    if file.suffix == ".parquet":
        yield from _parquet_rows(file)
        return
    convert = [_VALUES.get(column["dataType"], _text) for column in entry.columns]
    with file.open("rb") as lines:
        for fields in csv_records(lines, skip=1):
            yield [
                None if field is None else to_value(field)
                for to_value, field in zip(convert, fields, strict=True)
            ]


def _parquet_rows(file: Path) -> Iterator[list[Any]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise Invalid(
            f"{file}: is Parquet, and {library_missing('parquet')}; {how_to_install('parquet')}"
        ) from None
    for batch in parquet.ParquetFile(file).iter_batches(batch_size=1000):
        yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def csv_records(lines: BinaryIO, *, skip: int) -> Iterator[list[bytes | None]]:
    """Yield the fields of each record of a CSV file of this server, without the first records.

    None is an empty field, which is null. Raises `ValueError` for anything else than this server writes.
    """
    record = b""
    for line in lines:
        record += line
        if record.count(b'"') % 2:
            continue  # a line feed within quotation marks
        if skip:
            skip -= 1
        else:
            yield _fields(record)
        record = b""
    if record:
        raise ValueError("the last record is incomplete")


def _fields(record: bytes) -> list[bytes | None]:
    fields: list[bytes | None] = []
    position = 0
    while position < len(record):
        match = _FIELD.match(record, position)
        if match is None or (match[3] == b"\r\n") != (match.end() == len(record)):
            raise ValueError(f"not CSV at byte {position} of a record")
        quoted, plain, _ = match.groups()
        fields.append(quoted.replace(b'""', b'"') if quoted is not None else plain or None)
        position = match.end()
    return fields


def _text(field: bytes) -> str:
    text = field.decode()
    return text.removeprefix("'")


def _boolean(field: bytes) -> bool:
    return {b"true": True, b"false": False}[field]


_VALUES: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "number": msgspec.json.decode,
    "milliseconds": int,
    "boolean": _boolean,
}
"""The types that are not text."""


def in_batches(states: Iterable[dict[str, Any]], length: int, bytes_max: int) -> Iterator[bytes]:
    """Yield JSON arrays of at most `length` states and about `bytes_max` bytes: bodies of calls that send states.

    In such a body a small number would be seconds, so times of before March 1973 are ISO text.
    """
    batch: list[bytes] = []
    size = 0
    for state in states:
        time_ms = state["time"]
        raw = msgspec.json.encode(state if time_ms >= SECONDS_BELOW else {**state, "time": iso(time_ms)})
        if batch and (len(batch) >= length or size + len(raw) > bytes_max):
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(raw)
        size += len(raw)
    if batch:
        yield b"[" + b",".join(batch) + b"]"
