"""The frames of a link that are not acknowledged, in memory or also in a file.

Owns the session and the numbers of frames. Does not own sending (`link_client`).

The file is only appended to, one `write` for each change, so that it is whole after `kill -9`; it is not synced, so a
loss of power may cost its newest frames. Each record has a checksum, and a torn last record is cut off. When most of
it is acknowledged it is replaced by a new file with the rest.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import struct
import zlib
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

import cbor2
import msgspec

from trunkline.bench.errors import BenchError
from trunkline.bench.link_frames import Frame, options_of, write_frame

FRAMES_MAX: Final = 10_000
"""Frames: a sender waits when so many are not acknowledged."""

BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes: the same of their sizes."""

GARBAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes: of acknowledged frames in a file, before it is replaced."""

_SESSION_BITS: Final = 53
_HEAD: Final = struct.Struct("<II")
"""Before each record: its length and its CRC-32."""


class Entry(NamedTuple):
    """A frame that is not acknowledged, as it is sent."""

    n: int
    backlog: bool
    device: str | None
    data: bytes


class _Begin(msgspec.Struct, tag=True, array_like=True):
    session: int
    last_n: int


class _Put(msgspec.Struct, tag=True, array_like=True):
    n: int
    backlog: bool
    device: str | None
    data: bytes
    instead_of: int = 0


class _Stored(msgspec.Struct, tag=True, array_like=True):
    n: int
    backlog: bool
    own_only: bool


class _Dropped(msgspec.Struct, tag=True, array_like=True):
    n: int


_Change = _Begin | _Put | _Stored | _Dropped
_changes = msgspec.msgpack.Decoder(_Change)


class FrameQueue:
    """The frames of one device in the order of their numbers, in the form of one subprotocol.

    With a file the frames in it are taken up again, with their session and numbers. Raises `BenchError` if the file
    cannot be used.
    """

    def __init__(self, file: Path | None = None, *, text: bool = False) -> None:
        self.text = text
        self.entries: dict[int, Entry] = {}
        self.session = secrets.randbits(_SESSION_BITS)
        self._last_n = 0
        self._bytes = 0
        self._file = file
        self._descriptor = -1
        self._size = 0
        if file is not None:
            try:
                self._open(file)
            except OSError as problem:
                self.close()
                raise BenchError(f"{file} cannot be used: {problem.strerror}.") from None

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def full(self) -> bool:
        """Whether a sender has to wait."""
        return len(self.entries) >= FRAMES_MAX or self._bytes >= BYTES_MAX

    def close(self) -> None:
        """Close the file. What is in it stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    # Changes.

    def put(self, body: Frame, device: str | None = None, *, backlog: bool = False) -> Entry:
        """Give a frame its number and keep it; `body` is the frame without its number and its options."""
        n = self._last_n + 1
        kind, *rest = body
        frame = [kind, n, *rest, *options_of(device, backlog=backlog)]
        change = _Put(n, backlog, device, write_frame(frame, text=self.text))
        self._change(change)
        return self.entries[change.n]

    def stored(self, n: int, *, backlog: bool, own_only: bool = False) -> None:
        """Every frame of this lane up to `n` is stored; with `own_only` none of peripherals."""
        self._change(_Stored(n, backlog, own_only))

    def drop(self, n: int) -> Entry | None:
        """A frame is over. Returns it, or None if it was not there."""
        entry = self.entries.get(n)
        if entry is not None:
            self._change(_Dropped(n))
        return entry

    def renew(self, n: int) -> Entry | None:
        """Give a frame that was refused a new number, behind all others. Returns it, or None if it was not there."""
        entry = self.entries.get(n)
        if entry is None:
            return None
        again = _Put(self._last_n + 1, entry.backlog, entry.device, self._renumbered(entry), n)
        self._change(again)
        return self.entries[again.n]

    def _renumbered(self, entry: Entry) -> bytes:
        frame: Frame = (msgspec.json.decode if self.text else cbor2.loads)(entry.data)
        frame[1] = self._last_n + 1
        return write_frame(frame, text=self.text)

    def _change(self, change: _Change) -> None:
        self._write(change)
        self._apply(change)
        if self._size > GARBAGE_BYTES_MAX + 2 * self._bytes:
            self._replace()

    def _apply(self, change: _Change) -> None:
        match change:
            case _Begin(session, last_n):
                self.session, self._last_n = session, last_n
            case _Put(n, backlog, device, data, instead_of):
                self._forget(instead_of)
                self.entries[n] = Entry(n, backlog, device, data)
                self._bytes += len(data)
                self._last_n = max(n, self._last_n)
            case _Stored(n, backlog, own_only):
                # Frames of the other lane may stand in between.
                for entry in list(takewhile(lambda one: one.n <= n, self.entries.values())):
                    if entry.backlog == backlog and not (own_only and entry.device is not None):
                        self._forget(entry.n)
            case _Dropped(n):
                self._forget(n)

    def _forget(self, n: int) -> None:
        entry = self.entries.pop(n, None)
        if entry is not None:
            self._bytes -= len(entry.data)

    # The file.

    def _open(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock(file)
        data = file.read_bytes()
        for change, end in _changes_in(data):
            self._apply(change)
            self._size = end
        if self._size < len(data):
            os.ftruncate(self._descriptor, self._size)
        if not self._size:
            self._write(_Begin(self.session, 0))

    def _lock(self, file: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchError(f"{file} is in use by another link.") from None

    def _write(self, change: _Change) -> None:
        if self._file is not None:
            record = _record_of(change)
            try:
                written = os.write(self._descriptor, record)
            except OSError as problem:
                raise BenchError(f"{self._file} cannot be written: {problem.strerror}.") from None
            if written < len(record):
                os.ftruncate(self._descriptor, self._size)
                raise BenchError(f"{self._file} cannot be written: no space is left.")
            self._size += written

    def _replace(self) -> None:
        """Replace the file by one with the frames that are not acknowledged."""
        assert self._file is not None
        changes: list[_Change] = [_Begin(self.session, self._last_n)]
        changes += [_Put(*one) for one in self.entries.values()]
        new = self._file.with_name(f"{self._file.name}.new")
        data = b"".join(map(_record_of, changes))
        new.write_bytes(data)
        os.close(self._descriptor)
        new.replace(self._file)
        self._descriptor = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._lock(self._file)
        self._size = len(data)


def _record_of(change: _Change) -> bytes:
    payload = msgspec.msgpack.encode(change)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def _changes_in(data: bytes) -> Iterable[tuple[_Change, int]]:
    """The whole records of a file, each with the place where it ends."""
    at = 0
    while at + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(payload) < length or zlib.crc32(payload) != checksum:
            return
        at += _HEAD.size + length
        yield _changes.decode(payload), at
