"""Reading zip files that somebody else has made, with bounded memory.

Owns the directory of the zip and the entries, and refuses what can harm: too many entries (before the directory is
read), entries that overlap, that are encrypted or links, names that are not wanted or twice there, sizes and checksums
that are not true, and more bytes than allowed. Does not own what the entries contain (`reader.py`).

The library's `zipfile` is not used: it makes an object for each entry before it can be asked how many there are, and
takes sizes, names and overlaps as they come.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge

if TYPE_CHECKING:
    from trunkline.limits.table import Limits

_END: Final = struct.Struct("<4s4H2LH")
_END64_LOCATOR: Final = struct.Struct("<4sLQL")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_COMMENT_BYTES_MAX: Final = 65_535
_STORED, _DEFLATED = 0, 8
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_LINK, _FORMAT_OF_FILE = 0o120000, 0o170000
_IN_EXTRA: Final = 0xFFFFFFFF
_EXTRA64: Final = 1
_PIECE_BYTES: Final = 64 * 1024
_RATIO_FREE_BYTES: Final = 1024 * 1024
"""Small entries may be packed as tightly as they are."""


class Entry(NamedTuple):
    """An entry of the directory. `offset` is that of its header."""

    packed: bool
    crc: int
    packed_bytes: int
    size_bytes: int
    offset: int
    written: bytes
    """The name as it is written."""


class ZipReader:
    """The entries of a zip by name. Raises `Invalid` or `PayloadTooLarge` with a sentence.

    `is_wanted` says which names may be there; one that is not is refused.
    """

    def __init__(self, file: BinaryIO, limits: Limits, is_wanted: Callable[[str], bool]) -> None:
        self._file = file
        self._limits = limits
        self.entries = self._directory(is_wanted)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content of an entry. The last piece comes only if size and checksum are those of the directory."""
        entry = self.entries[name]
        self._place(entry, name)
        left, made, crc = entry.packed_bytes, 0, 0
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if entry.packed else None
        held: bytes | None = None
        pending = b""
        position = self._file.tell()
        while True:
            if not pending and left:
                self._file.seek(position)
                pending = self._file.read(min(_PIECE_BYTES, left))
                if not pending:
                    raise Invalid(f"importBundle: {name} ends in the middle; the zip is not complete.")
                left -= len(pending)
                position += len(pending)
            if inflater is None:
                piece, pending = pending, b""
            else:
                try:
                    piece = inflater.decompress(pending, _PIECE_BYTES)
                except zlib.error:
                    raise Invalid(
                        f"importBundle: {name} is not packed as it says; create the zip again."
                    ) from None
                pending = inflater.unconsumed_tail
            made += len(piece)
            if made > entry.size_bytes:
                raise Invalid(
                    f"importBundle: {name} has more bytes than the directory says; create the zip again."
                )
            crc = zlib.crc32(piece, crc)
            if piece:
                if held is not None:
                    yield held
                held = piece
            if inflater is not None and inflater.eof:
                if pending or left or inflater.unused_data:
                    raise Invalid(f"importBundle: {name} has bytes behind its end; create the zip again.")
                break
            if not pending and not left and not piece:
                break
        if made != entry.size_bytes or crc != entry.crc or (inflater is not None and not inflater.eof):
            raise Invalid(f"importBundle: {name} is not what the directory says; the zip is damaged.")
        if held is not None:
            yield held

    # The directory.

    def _directory(self, is_wanted: Callable[[str], bool]) -> dict[str, Entry]:
        count, size, start = self._end()
        most = self._limits.bundle_entries_max
        if count > most:
            raise PayloadTooLarge(f"importBundle: has {count} entries; at most {most} are allowed.")
        entries: dict[str, Entry] = {}
        self._file.seek(start)
        total, left = 0, size
        for _ in range(count):
            entry, name, used = self._entry(left)
            left -= used
            if not is_wanted(name):
                raise Invalid(
                    f"importBundle: the entry {name[:100]!r} is not part of a bundle; give the zip that an export made."
                )
            if name in entries:
                raise Invalid(f"importBundle: the entry {name} stands in the zip twice.")
            self._check_ratio(name, entry)
            total += entry.size_bytes
            entries[name] = entry
        if left:
            raise Invalid("importBundle: the directory of the zip has more entries than it says.")
        if total > self._limits.bundle_unpacked_bytes_max:
            raise PayloadTooLarge(
                f"importBundle: has {total} bytes unpacked; "
                f"at most {self._limits.bundle_unpacked_bytes_max} are allowed."
            )
        _check_overlap(entries, start)
        return entries

    def _end(self) -> tuple[int, int, int]:
        """The number of entries, and the size and the place of the directory, from the end of the file."""
        file = self._file
        file_bytes = file.seek(0, 2)
        tail_bytes = min(file_bytes, _END.size + _COMMENT_BYTES_MAX)
        file.seek(file_bytes - tail_bytes)
        tail = _exactly(file, tail_bytes)
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            raise Invalid("importBundle: is not a zip file; give the zip that an export made.")
        _, disk, first, here, count, size, start, comment = _END.unpack_from(tail, at)
        if at + _END.size + comment != len(tail):
            raise Invalid("importBundle: has bytes behind the end of the zip; create the zip again.")
        end = file_bytes - tail_bytes + at
        if 0xFFFF in (count, here, disk) or _IN_EXTRA in (size, start):
            disk, first, here, count, size, start, end = self._end64(end)
        if disk or first or here != count:
            raise Invalid("importBundle: is one part of several; give a zip of one file.")
        if start + size != end:
            raise Invalid(
                "importBundle: the directory of the zip is not where its end says; create the zip again."
            )
        return count, size, start

    def _end64(self, end: int) -> tuple[int, int, int, int, int, int, int]:
        wrong = Invalid("importBundle: the end of the zip is damaged; create the zip again.")
        if end < _END64_LOCATOR.size + _END64.size:
            raise wrong
        self._file.seek(end - _END64_LOCATOR.size)
        mark, _, place, _ = _END64_LOCATOR.unpack(_exactly(self._file, _END64_LOCATOR.size))
        if mark != b"PK\x06\x07" or place != end - _END64_LOCATOR.size - _END64.size:
            raise wrong
        self._file.seek(place)
        mark, _, _, _, disk, first, here, count, size, start = _END64.unpack(
            _exactly(self._file, _END64.size)
        )
        if mark != b"PK\x06\x06":
            raise wrong
        return disk, first, here, count, size, start, place

    def _entry(self, left: int) -> tuple[Entry, str, int]:
        """The next entry of the directory, its name, and its bytes in the directory."""
        wrong = Invalid("importBundle: the directory of the zip is damaged; create the zip again.")
        if left < _ENTRY.size:
            raise wrong
        fields = _ENTRY.unpack(_exactly(self._file, _ENTRY.size))
        mark, _, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes, comment = fields[:13]
        _, _, attributes, offset = fields[13:]
        used = _ENTRY.size + name_bytes + extra_bytes + comment
        if mark != b"PK\x01\x02" or used > left:
            raise wrong
        written = _exactly(self._file, name_bytes)
        name = written.decode("utf-8", "backslashreplace")
        extra = _exactly(self._file, extra_bytes + comment)[:extra_bytes]
        shown = name[:100]
        if flags & _ENCRYPTED:
            raise Invalid(f"importBundle: the entry {shown!r} is encrypted; give a zip without a password.")
        if method not in (_STORED, _DEFLATED):
            raise Invalid(
                f"importBundle: the entry {shown!r} is packed by a method other than deflate; create the zip again."
            )
        if (attributes >> 16) & _FORMAT_OF_FILE == _LINK:
            raise Invalid(f"importBundle: the entry {shown!r} is a link; a bundle has only files.")
        wide = iter(_wide(extra))
        try:
            size, packed, offset = (
                next(wide) if value == _IN_EXTRA else value for value in (size, packed, offset)
            )
        except (StopIteration, RuntimeError):
            raise wrong from None
        return Entry(method == _DEFLATED, crc, packed, size, offset, written), name, used

    def _check_ratio(self, name: str, entry: Entry) -> None:
        if not entry.packed and entry.packed_bytes != entry.size_bytes:
            raise Invalid(f"importBundle: {name} has two sizes; create the zip again.")
        most = self._limits.bundle_unpacked_times
        if entry.size_bytes > max(_RATIO_FREE_BYTES, most * entry.packed_bytes):
            raise PayloadTooLarge(
                f"importBundle: {name} unpacks to more than {most} times its size, which no export makes."
            )

    def _place(self, entry: Entry, name: str) -> None:
        """Go to the content of an entry, behind its header."""
        self._file.seek(entry.offset)
        header = self._file.read(_LOCAL.size)
        if len(header) == _LOCAL.size:
            mark, _, flags, method, *_, name_bytes, extra_bytes = _LOCAL.unpack(header)
            own = self._file.read(name_bytes)
            if (
                mark == b"PK\x03\x04"
                and own == entry.written
                and (method == _DEFLATED) == entry.packed
                and not flags & _ENCRYPTED
            ):
                self._file.seek(extra_bytes, 1)
                return
        raise Invalid(f"importBundle: {name} is not where the directory says; the zip is damaged.")


def _exactly(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) != size:
        raise Invalid("importBundle: ends in the middle; the zip is not complete.")
    return found


def _wide(extra: bytes) -> Iterator[int]:
    """Yield the sizes and the offset that need more than four bytes, in their order."""
    at = 0
    while at + 4 <= len(extra):
        tag, size = struct.unpack_from("<2H", extra, at)
        if tag == _EXTRA64:
            for place in range(at + 4, min(at + 4 + size, len(extra)) - 7, 8):
                yield struct.unpack_from("<Q", extra, place)[0]
            return
        at += 4 + size


def _check_overlap(entries: dict[str, Entry], directory: int) -> None:
    """Raise `Invalid` if two entries share bytes, which makes a small zip unpack to a very large one."""
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: entry.offset):
        if entry.offset < end:
            raise Invalid("importBundle: entries of the zip overlap; create the zip again.")
        end = entry.offset + _LOCAL.size + entry.packed_bytes
    if end > directory:
        raise Invalid("importBundle: an entry of the zip reaches into the directory; create the zip again.")
