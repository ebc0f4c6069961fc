"""The files beside the store's file, and what is on the disk of them when the power is cut.

The content of a file is sure when the file was synced, the name of a file when its directory was synced. Of what came
later a cut leaves any part: a content may be the old one, the new one, empty, or end with zeros, a file that was
created may not be there, one that was removed may be there again, and a file that was renamed may have either name,
both or none.

Owns what was synced, and the tree after a cut. Does not own when the power is cut (`disk.py`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from trunkline.store.partitions import FOLDER

MACHINES: Final = "machines"
"""The folder with the data directories of several machines."""
BESIDE: Final = frozenset({"store", "lock", "control.sock", "crash"})
"""What is left out at the top, and in the folder of each partition: the store, and what each start makes anew."""


class Entry(NamedTuple):
    """A name in a directory: the number of the file, None for a directory."""

    file: int | None


Tree = dict[str, bytes | None]
"""Contents by path, None for a directory. Parents stand before what they hold."""


class LooseFiles:
    """All files below a directory but the store. What is there at the beginning is on the disk."""

    def __init__(self, path: Path, chance: Random, left_out: frozenset[str] = BESIDE) -> None:
        self._path = path
        self._left_out = left_out
        self._chance = chance
        self._names: dict[str, dict[str, Entry]] = {}
        """By directory, the names that are on the disk."""
        self._contents: dict[int, bytes] = {}
        """By number of the file, what is on the disk of it."""
        self._held: dict[int, int] = {}
        """Descriptors of files that were synced, so that no other file gets their numbers."""
        if path.is_dir():
            self._take_all("")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note what is synced meanwhile."""
        syncs = os.fsync, os.fdatasync

        def seen(descriptor: int) -> None:
            syncs[0](descriptor)
            self._synced(descriptor)

        os.fsync = os.fdatasync = seen  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync, os.fdatasync = syncs
            for descriptor in self._held.values():
                os.close(descriptor)

    def after_cut(self) -> Tree:
        """What is on the disk now, when the power is cut."""
        tree: Tree = {}
        self._cut("", tree)
        return tree

    def _take_all(self, folder: str) -> None:
        self._names[folder] = names = self._listed(folder)
        for name, entry in names.items():
            path = f"{folder}/{name}" if folder else name
            if entry.file is None:
                self._take_all(path)
            else:
                self._hold(os.open(self._path / path, os.O_RDONLY), entry.file)

    def _hold(self, descriptor: int, number: int) -> None:
        self._contents[number] = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        if number in self._held:
            os.close(descriptor)
        else:
            self._held[number] = descriptor

    def _synced(self, descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if not path.is_relative_to(self._path):
            return
        inside = path.relative_to(self._path)
        if inside.parts and _top(inside.as_posix()) in self._left_out:
            return
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            folder = inside.as_posix()
            self._names["" if folder == "." else folder] = self._listed("" if folder == "." else folder)
        else:
            self._hold(os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY), found.st_ino)

    def _listed(self, folder: str) -> dict[str, Entry]:
        """The names in a directory now; none if it is not there."""
        path = self._path / folder
        if not path.is_dir():
            return {}
        with os.scandir(path) as entries:
            return {
                each.name: Entry(None if each.is_dir(follow_symlinks=False) else each.inode())
                for each in sorted(entries, key=lambda each: each.name)
                if _top(f"{folder}/{each.name}" if folder else each.name) not in self._left_out
            }

    def _cut(self, folder: str, tree: Tree) -> None:
        now, on_disk = self._listed(folder), self._names.get(folder, {})
        for name in sorted({*now, *on_disk}):
            old, new = on_disk.get(name), now.get(name)
            entry = new if old == new or self._chance.random() < 0.5 else old
            if entry is None:
                continue
            path = f"{folder}/{name}" if folder else name
            tree[path] = None
            if entry.file is None:
                self._cut(path, tree)
            else:
                tree[path] = self._content(entry.file, self._path / path if entry is new else None)

    def _content(self, number: int, path: Path | None) -> bytes:
        """Of a file on the disk; `path` is where it can be read."""
        old = self._contents.get(number)
        if number in self._held:
            new = os.pread(self._held[number], os.fstat(self._held[number]).st_size, 0)
        else:
            new = b"" if path is None else path.read_bytes()
        if old == new:
            return new
        at = self._chance.randrange(len(new) + 1)
        return self._chance.choice((old or b"", new, b"", new[:at], new[:at] + bytes(len(new) - at)))


def _top(path: str) -> str:
    """The first name in a path below a data directory, or below the folder of a partition or of a machine."""
    names = path.split("/")
    while names[0] in (FOLDER, MACHINES) and len(names) > 2:
        names = names[2:]
    return names[0]


def write_tree(tree: Tree, target: Path) -> None:
    """Write what was on the disk as another directory."""
    target.mkdir(mode=0o700)
    for name, content in tree.items():
        if content is None:
            (target / name).mkdir(mode=0o700)
        else:
            (target / name).touch(0o600)
            (target / name).write_bytes(content)
