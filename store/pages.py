"""The pages of LMDB's file, read without LMDB: the length, the meta pages, and every tree.

Owns the inspection of a file before LMDB may map it, and for `check`. LMDB trusts what it reads: a damaged page
ends the process by an assertion or a signal, which no code in the process can catch. Here the file is only read
with `pread`, so damage is a sentence and never a crash.

Known is the layout of LMDB 0.9 on machines of 64 bits, without duplicate keys, which this program does not use.
Verified are the two meta pages; that every page is within the file, has its own number, has the type that its
depth requires, and is reached once; that nodes fill a page without gaps; that keys ascend, also across pages, and
lie between the separators of the branches above; the counters of each tree; and that no page is both used and
free. What is inside of a value is not verified here: that is what checksums are for (`checksums.py`).

The file is long because one place knows the whole layout.

The walk is of one committed state. The file must not be written meanwhile, or a read transaction that is at
least as old must be open, so that no page of that state is used again.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from operator import ge
from pathlib import Path
from typing import Final, NamedTuple

from trunkline.store.errors import StoreDamaged, translate
from trunkline.store.keys import ARRIVALS_END

PROBLEMS_MAX: Final = 100
"""At most this many problems are described; a walk ends with them."""

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_METAS: Final = 2
_NONE: Final = 2**64 - 1
_FREE: Final = "free pages"
_MAIN: Final = ""
_DEPTH_MAX: Final = 32
_META_BYTES: Final = 152
_HEADER_BYTES: Final = 16
_PAGE_BYTES: Final = (4096, 8192, 16384, 32768)

_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_IN_OVERFLOW, _IS_TREE = 1, 2

_HEADER = struct.Struct("=QHHHH")  # number, pad, flags, lower, upper
_OVERFLOW_HEADER = struct.Struct("=QHHI")  # number, pad, flags, pages
_META_HEAD = struct.Struct("=IIQQ")  # magic, version, address, size of the map
_META_TAIL = struct.Struct("=QQ")  # last page, transaction
_TREE = struct.Struct("=IHHQQQQQ")
_NUMBER = struct.Struct("=Q")
_UPPER = struct.Struct("=H")
_CLOCK_PAGES: Final = 64


class Tree(NamedTuple):
    """LMDB's record of one tree."""

    pad: int
    flags: int
    depth: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class Meta(NamedTuple):
    """What a meta page says."""

    page_bytes: int
    last_page: int
    transaction: int
    free: Tree
    main: Tree


class Found(NamedTuple):
    """The result of an inspection: what is wrong, the pages that were read, and whether those were all."""

    problems: list[str]
    pages: int
    complete: bool


def inspect(file: Path, *, seconds_max: float | None = None) -> Found:
    """Inspect the file of a store: first all branch pages, then all leaves, for at most `seconds_max` in all.

    Raises StoreDamaged if the file cannot be walked at all, StoreBroken if it cannot be read.
    """
    with _reading(file) as descriptor:
        meta, whole = _newest_meta(descriptor)
        deadline_s = None if seconds_max is None or not whole else time.monotonic() + seconds_max
        branches = _Walk(descriptor, meta, deadline_s, leaves=False)
        branches.run()
        if branches.problems or not branches.complete:
            return Found(branches.problems, branches.pages, branches.complete)
        walk = _Walk(descriptor, meta, deadline_s, leaves=True)
        walk.run()
        return Found(walk.problems, walk.pages, walk.complete)


def free_bytes(file: Path, oldest_read: int | None = None) -> int:
    """The bytes of the free pages that the next commit may use: not those of the newest commit.

    `oldest_read` is the transaction that the oldest open read sees: what was freed since then is still read.
    """
    with _reading(file) as descriptor:
        meta, _ = _newest_meta(descriptor)
        walk = _Walk(descriptor, meta, None, leaves=True)
        walk.walk(_FREE, meta.free)
        before = meta.transaction if oldest_read is None else min(meta.transaction, oldest_read)
        usable = [raw for transaction, raw in walk.free_lists if transaction < before]
        return sum(len(raw) // _NUMBER.size - 1 for raw in usable) * meta.page_bytes


@contextmanager
def _reading(file: Path) -> Iterator[int]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise translate(error, f"opening of {file}") from error
    try:
        yield descriptor
    except OSError as error:
        raise translate(error, f"reading of {file}") from error
    finally:
        os.close(descriptor)


def _newest_meta(descriptor: int) -> tuple[Meta, bool]:
    """The meta page of the newest commit, as LMDB chooses it, and whether the file has all pages that it counts."""
    first, second = _meta_pages(descriptor)
    newest, other = (first, second) if first.transaction >= second.transaction else (second, first)
    if newest.transaction and newest.transaction - other.transaction != 1:
        raise StoreDamaged(
            f"the meta pages are of the transactions {first.transaction} and {second.transaction}, which do not "
            "follow each other"
        )
    for number, meta in enumerate((first, second)):
        if meta.transaction and meta.transaction % 2 != number:
            raise StoreDamaged(f"meta page {number} is of the transaction {meta.transaction}")
    size_bytes = os.fstat(descriptor).st_size
    missing_bytes = (newest.last_page + 1) * newest.page_bytes - size_bytes
    # The last pages may have been free before they were ever written, so some may be missing in a sound file.
    if missing_bytes > size_bytes:
        raise StoreDamaged(f"it has {size_bytes} bytes, and {missing_bytes} bytes at its end are missing")
    return newest, missing_bytes <= 0


def _meta_pages(descriptor: int) -> tuple[Meta, Meta]:
    """Both meta pages, of one moment: another process may be committing."""
    while True:
        first = _meta(descriptor, 0, 0)
        second = _meta(descriptor, 1, first.page_bytes)
        if first == _meta(descriptor, 0, 0):
            break
    if second.page_bytes != first.page_bytes:
        raise StoreDamaged("the two meta pages name different sizes of a page")
    return first, second


def _meta(descriptor: int, number: int, page_bytes: int) -> Meta:
    raw = os.pread(descriptor, _META_BYTES, number * page_bytes)
    if len(raw) < _META_BYTES:
        raise StoreDamaged("it is shorter than its meta pages, so it was cut off or is not a store")
    page, _, flags, _, _ = _HEADER.unpack_from(raw)
    magic, version, _, _ = _META_HEAD.unpack_from(raw, _HEADER_BYTES)
    if magic != _MAGIC or not flags & _META or page != number:
        raise StoreDamaged(f"meta page {number} is not one of LMDB")
    if version != _VERSION:
        raise StoreDamaged(
            f"meta page {number} is of version {version} of LMDB's files, not of version {_VERSION}"
        )
    free = Tree._make(_TREE.unpack_from(raw, 40))
    main = Tree._make(_TREE.unpack_from(raw, 88))
    last_page, transaction = _META_TAIL.unpack_from(raw, 136)
    if free.pad not in _PAGE_BYTES:
        raise StoreDamaged(f"meta page {number} names {free.pad} bytes as the size of a page")
    return Meta(free.pad, last_page, transaction, free, main)


class _Stop(Exception):
    """Ends a walk: the time is over, or there are too many problems."""


class _Damaged(Exception):
    """A page that cannot be used. The message says why."""


class _Walk:
    """One walk over all trees; without `leaves` only over branch pages."""

    def __init__(
        self,
        descriptor: int,
        meta: Meta,
        deadline_s: float | None,
        *,
        leaves: bool,
    ) -> None:
        self.problems: list[str] = []
        self.pages = 0
        self.complete = True
        self._descriptor = descriptor
        self._meta = meta
        self._deadline_s = deadline_s
        self._leaves = leaves
        self._used = bytearray(meta.last_page + 1)
        self._named: list[tuple[str, Tree]] = []
        self.free_lists: list[tuple[int, bytes]] = []
        # Of the tree that is being walked:
        self._name = ""
        self._tree = meta.main
        self._counts = [0, 0, 0, 0]  # branch, leaf and overflow pages, entries

    def run(self) -> None:
        meta = self._meta
        self._used[:_METAS] = b"\x01" * _METAS
        try:
            self.walk("", meta.main)
            for name, tree in self._named:
                self.walk(name, tree)
            self.walk(_FREE, meta.free)
            if self._leaves and not self.problems:
                self._check_free()
        except _Stop:
            self.complete = False

    def _problem(self, text: str) -> None:
        self.problems.append(text)
        if len(self.problems) >= PROBLEMS_MAX:
            raise _Stop

    def walk(self, name: str, tree: Tree) -> None:
        self._name, self._tree = name, tree
        self._counts = [0, 0, 0, 0]
        label = f"the tree of {name or 'databases'}"
        if tree.root == _NONE:
            if any(tree[2:7]):
                self._problem(f"{label} has no root, but pages or entries are counted")
            return
        if not 0 < tree.depth <= _DEPTH_MAX:
            self._problem(f"{label} has a depth of {tree.depth}")
            return
        before = len(self.problems)
        self._page(tree.root, 1, None, None)
        if self._leaves and len(self.problems) == before:
            named = ("branch pages", "leaf pages", "overflow pages", "entries")
            for what, found, counted in zip(named, self._counts, tree[3:7], strict=True):
                if found != counted:
                    self._problem(f"{label} has {found} {what}, {counted} are counted")

    def _page(self, number: int, depth: int, low: bytes | None, high: bytes | None) -> None:
        """Inspect a page and those below it. Its keys must lie from `low` (included) to `high`."""
        leaf = depth == self._tree.depth
        if leaf and not self._leaves and self._name != _MAIN:
            if not _METAS <= number <= self._meta.last_page:
                self._problem(f"{self._name}: page {number} lies outside of the file")
            return
        try:
            self._take(number)
            raw = self._read(number, 1)
            if leaf:
                self._counts[1] += 1
                self._leaf(number, raw, low, high)
                return
            self._counts[0] += 1
            children = self._branch(number, raw, low, high)
        except _Damaged as damage:
            self._problem(f"{self._name or 'databases'}: page {number} {damage}")
            return
        for child, child_low, child_high in children:
            self._page(child, depth + 1, child_low, child_high)

    def _take(self, number: int) -> None:
        """Note that a page is used."""
        if not _METAS <= number <= self._meta.last_page:
            raise _Damaged("lies outside of the file")
        if self._used[number]:
            raise _Damaged("is used twice")
        self._used[number] = 1
        self.pages += 1
        if (
            self._deadline_s is not None
            and not self.pages % _CLOCK_PAGES
            and time.monotonic() > self._deadline_s
        ):
            raise _Stop

    def _read(self, number: int, pages: int) -> bytes:
        page_bytes = self._meta.page_bytes
        raw = os.pread(self._descriptor, pages * page_bytes, number * page_bytes)
        if len(raw) < pages * page_bytes:
            raise _Damaged("lies behind the end of the file")
        return raw

    def _nodes(self, number: int, raw: bytes, kind: int) -> tuple[array[int], list[int]]:
        """The words of 16 bits of a page, and the place of each node in it, in the order of the keys."""
        stored, _, flags, lower, upper = _HEADER.unpack_from(raw)
        if stored != number:
            raise _Damaged(f"has the number {stored}" if any(raw) else "is empty")
        if flags != kind:
            raise _Damaged(f"is not a {'leaf' if kind == _LEAF else 'branch'} (its flags are {flags:#x})")
        if lower < _HEADER_BYTES or lower % 2 or lower > upper or upper > len(raw):
            raise _Damaged(f"has bounds of {lower} and {upper}")
        words = array("H", raw)
        places = words[_HEADER_BYTES // 2 : lower // 2].tolist()
        if len(places) < (1 if kind == _LEAF else 2):
            raise _Damaged(f"has {len(places)} entries")
        return words, places

    def _branch(
        self, number: int, raw: bytes, low: bytes | None, high: bytes | None
    ) -> list[tuple[int, bytes | None, bytes | None]]:
        """The children of a branch page, each with the bounds of its keys."""
        words, places = self._nodes(number, raw, _BRANCH)
        children: list[int] = []
        separators: list[bytes] = []
        extents: list[tuple[int, int]] = []
        for place in places:
            if place % 2 or place + 8 > len(raw):
                raise _Damaged("has a node outside of it")
            word = place // 2
            size = words[word + 3]
            children.append(words[word] | words[word + 1] << 16 | words[word + 2] << 32)
            separators.append(raw[place + 8 : place + 8 + size])
            extents.append((place, (9 + size) & ~1))
        _check_filled(extents, raw)
        bounds = separators[1:]
        self._check_ascending(bounds, low, high)
        return list(zip(children, [low, *bounds], [*bounds, high], strict=True))

    def _check_ascending(self, keys: list[bytes], low: bytes | None, high: bytes | None) -> None:
        """The keys of a page ascend and lie from `low` (included) to `high`."""
        if self._name == _FREE:  # its keys are numbers in the order of bytes of this machine
            return
        if (
            any(map(ge, keys, keys[1:]))
            or (low is not None and keys[0] < low)
            or (high is not None and keys[-1] >= high)
        ):
            raise _Damaged("has keys that are not in order")

    def _leaf(self, number: int, raw: bytes, low: bytes | None, high: bytes | None) -> None:
        words, places = self._nodes(number, raw, _LEAF)
        extents: list[tuple[int, int]] = []
        keys: list[bytes] = []
        for place in places:
            if place % 2 or place + 8 > len(raw):
                raise _Damaged("has a node outside of it")
            word = place // 2
            flags, key_bytes, value_bytes = (
                words[word + 2],
                words[word + 3],
                words[word] | words[word + 1] << 16,
            )
            start = place + 8 + key_bytes
            key = raw[place + 8 : start]
            keys.append(key)
            is_tree = self._name == _MAIN and key >= ARRIVALS_END
            if is_tree != (flags == _IS_TREE) or (is_tree and value_bytes != _TREE.size):
                raise _Damaged(f"has an entry {key.hex()} that is {'no' if is_tree else 'a'} database")
            if flags == _IN_OVERFLOW:
                value = self._overflow(raw[start : start + 8], value_bytes)
                value_bytes = 8
            elif flags in (0, _IS_TREE):
                value = raw[start : start + value_bytes]
            else:
                raise _Damaged(f"has an entry with the flags {flags:#x}")
            extents.append((place, (9 + key_bytes + value_bytes) & ~1))
            if is_tree:
                self._named.append((key.decode("utf-8", "backslashreplace"), Tree._make(_TREE.unpack(value))))
            elif self._name == _FREE:
                self.free_lists.append((int.from_bytes(key, sys.byteorder), value))
        _check_filled(extents, raw)
        self._check_ascending(keys, low, high)
        self._counts[3] += len(keys)

    def _overflow(self, where: bytes, value_bytes: int) -> bytes:
        """Inspect the pages of a value that has pages of its own; return it if it is a list of free pages."""
        (number,) = _NUMBER.unpack(where) if len(where) == _NUMBER.size else (_NONE,)
        pages = (_HEADER_BYTES - 1 + value_bytes) // self._meta.page_bytes + 1
        for page in range(number, number + min(pages, self._meta.last_page + 1)):
            self._take(page)
        raw = self._read(number, pages if self._name == _FREE else 1)
        stored, _, flags, counted = _OVERFLOW_HEADER.unpack_from(raw)
        if (stored, flags, counted) != (number, _OVERFLOW, pages):
            raise _Damaged(f"refers to page {number}, which does not begin a value of {pages} pages")
        self._counts[2] += pages
        return raw[_HEADER_BYTES : _HEADER_BYTES + value_bytes]

    def _check_free(self) -> None:
        """Every page must be used or free, and none both: a free page is overwritten by a later commit."""
        free = bytearray(len(self._used))
        for _, raw in self.free_lists:
            numbers = array("Q", raw) if raw and len(raw) % 8 == 0 else array("Q")
            if not numbers or numbers[0] != len(numbers) - 1:
                self._problem("a list of free pages has not the length that it names")
                continue
            for number in numbers[1:]:
                if not _METAS <= number < len(free) or free[number]:
                    self._problem(f"page {number} cannot be free, or is so twice")
                else:
                    free[number] = 1
        both = sum(map(int.__and__, free, self._used))
        if both:
            self._problem(f"{both} pages are used and free at the same time")
        lost = len(free) - sum(map(int.__or__, free, self._used))
        if lost:
            self._problem(f"{lost} pages are neither used nor free")


def _check_filled(extents: list[tuple[int, int]], raw: bytes) -> None:
    """The nodes of a page lie without gaps and without overlaps from its upper bound to its end."""
    (end,) = _UPPER.unpack_from(raw, 14)
    for place, size in sorted(extents):
        if place != end:
            raise _Damaged("has nodes that overlap or leave a gap")
        end += size
    if end != len(raw):
        raise _Damaged("has nodes that do not end with it")
