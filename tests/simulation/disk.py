"""The disk below a store: what is on it when the power is cut, commits that fail, and commits that take long.

The store and its file are real. A power cut leaves an image of the file in another directory, in which the next life of
the server begins. What an image may hold follows from what was synced: LMDB writes the pages of a commit, syncs them,
and writes and syncs the page that makes them valid. So a cut in the middle of a commit leaves what was there before,
and of the pages that the commit has written any sectors at all. A store that was opened without these syncs may also
lose what it has acknowledged, as on a real disk. Where a machine has several stores, one cut takes all of them.

The death of a process is another thing: what LMDB has written stays, as it is the kernel's.

Owns the images of the store's file. Does not own the files beside it, contents and results (`loose_files.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.simulation.loose_files import LooseFiles, Tree, write_tree
from trunkline.store.batch import Batch
from trunkline.store.commit_group import Group
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken

PAGE: Final = 4096
SECTOR: Final = 512
_METAS: Final = (0, 1)
"""The two pages that say which tree is valid, in turns."""


class PowerCut(BaseException):
    """The machine has lost its power. Whoever still runs is a ghost."""


class Killed(BaseException):
    """A process has died. Whoever still runs in it is a ghost."""


class Fault(NamedTuple):
    """What happens at a commit: `cut` is `before`, `torn` or `after`; `error` is raised; `delay_s` passes."""

    cut: str | None = None
    error: OSError | None = None
    delay_s: float = 0.0


class Disk:
    """The disk of one life. `next_fault` is what happens at the next commit.

    `whole` is where all files are, if that is not the directory of the first store.
    `older` is the file of the store as it was after the commit with the number `older_at`, if that is not 0. `root` is
    the disk of the first store of the machine, if this one is of another.
    """

    def __init__(
        self,
        path: Path,
        chance: Random,
        sleep: Callable[[float], None],
        on_cut: Callable[[str], None],
        root: Disk | None = None,
        whole: Path | None = None,
    ) -> None:
        self.path = path
        self.whole: Path = root.whole if root is not None else whole or path
        """Where all stores and the files beside them are."""
        self.machine: list[Disk] = [] if root is None else root.machine
        """The disks of all stores."""
        self.machine.append(self)
        self.on_kill: Callable[[str], None] = lambda _how: None
        """Called when the process that has the store is to die, at a commit."""
        self.dies_now: Callable[[], bool] = lambda: False
        """Asked after each commit."""
        self._kill_at = 0
        self.next_fault: Fault | None = None
        self.commits = 0
        self.older_at = 0
        self.older = b""
        self._cut_at = 0
        self.on_failure: Callable[[], None] = lambda: None
        self._chance = chance
        self._sleep = sleep
        self._on_cut = on_cut
        self._data = path / "store" / "data.mdb"
        self._store: Store | None = None
        self._syncs = self._syncs_all = True
        self._image: bytes | None = None
        self.files: LooseFiles = (
            LooseFiles(self.whole, Random(chance.random())) if root is None else root.files
        )
        self._tree: Tree = {}
        self._over_already = False
        self._fault = Fault()

    def watch(self, store: Store) -> None:
        """Be below the commits of a store from now on."""
        self._store = store
        flags = store.memory_map.env.flags()
        self._syncs, self._syncs_all = bool(flags["sync"]), bool(flags["sync"] and flags["metasync"])
        journal: Any = store.journal
        write = journal._write

        def watched(*group: Any) -> Any:
            if self._over_already or self._store is not store:
                return write(*group)
            fault, self.next_fault = self.next_fault or Fault(), None
            self.commits += 1
            if 0 < self._cut_at <= self.commits:  # later than planned, where the map must grow first
                fault = Fault(cut=self._chance.choice(("before", "torn", "torn", "after")))
            before = self._data.read_bytes() if fault.cut or not self._syncs_all else b""
            self._fault = fault
            written = write(*group)
            if self.commits == self.older_at:
                self.older = self._data.read_bytes()
            if not self._syncs_all:
                self._image = before
            if fault.cut:
                self._image = self._cut_in_commit(fault.cut, before, self._data.read_bytes())
                self._over(fault.cut)
                raise PowerCut
            if self.dies_now() or 0 < self._kill_at <= self.commits:
                self._kill("after a commit")
            return written

        def killed(*group: Any) -> Any:
            is_due = not self._over_already and 0 < self._kill_at <= self.commits + 1
            if is_due and self._chance.random() < 0.5:
                self._kill("before a commit")
            return watched(*group)

        journal._write = killed
        journal._sync_delay_s = self._before_sync

    def _kill(self, how: str) -> None:
        self._kill_at = 0
        self.on_kill(how)
        raise Killed

    def kill_soon(self, commits: int) -> None:
        """Let the process die at the last of so many commits: before it, or right after. 0: not any more."""
        self._kill_at = self.commits + commits if commits else 0

    def _before_sync(self) -> float:
        fault = self._fault
        if fault.error is not None:
            self.on_failure()
            raise fault.error
        if fault.delay_s:
            self._sleep(fault.delay_s)
        return 0.0

    def cut_soon(self, commits: int) -> None:
        """Cut the power at the last of so many commits: before it, in the middle of it, or right after."""
        at = self.commits + commits
        self._cut_at = min(self._cut_at or at, at)

    def cut_now(self) -> None:
        """Lose the power between two commits."""
        if self._over_already:
            raise PowerCut
        self._take_image()
        self._over("idle")

    def _take_image(self) -> None:
        if self._syncs_all or self._image is None:
            self._image = self._data.read_bytes()

    def _over(self, how: str) -> None:
        self.machine[0]._tree = self.files.after_cut()
        for disk in self.machine:
            if disk is not self:
                disk._take_image()
            disk._over_already = True
        self._on_cut(how)
        for disk in self.machine:
            if disk._store is not None:
                take_nothing(disk._store)

    def image_to(self, target: Path) -> None:
        """Write what is on the disk after the cut as another data directory. For the disk of the first store."""
        write_tree(self._tree, target)
        for disk in self.machine:
            assert disk._image is not None
            folder = target / disk.path.relative_to(self.whole) / "store"
            folder.mkdir(mode=0o700)
            (folder / "data.mdb").write_bytes(disk._image)

    def _cut_in_commit(self, cut: str, before: bytes, after: bytes) -> bytes:
        if cut == "before":
            return before
        if cut == "after":
            return after if self._syncs_all else before
        return torn(before, after, self._chance, metas=not self._syncs)


def take_nothing(store: Store) -> None:
    """Let whoever still runs store nothing any more."""
    store.journal.submit = _nothing  # type: ignore[method-assign, assignment]


def _nothing(_batch: Batch) -> Group:
    """What becomes of a batch then. Some who wait for it cannot be cancelled."""
    group = Group()
    group.finish(StoreBroken("The machine has stopped."))
    return group


def torn(before: bytes, after: bytes, chance: Random, *, metas: bool = False) -> bytes:
    """A file of which some sectors were written and others were not.

    The pages that make a commit valid stay as they were, unless `metas`: they are written after a sync.
    """
    length = max(len(before), len(after))
    old, image = before.ljust(length, b"\0"), bytearray(before.ljust(length, b"\0"))
    share = chance.choice((0.0, 0.2, 0.5, 0.9, 1.0))
    for page in range(length // PAGE):
        if page in _METAS and not metas:
            continue
        for at in range(page * PAGE, (page + 1) * PAGE, SECTOR):
            part = after[at : at + SECTOR]
            if part != old[at : at + SECTOR] and chance.random() < share:
                image[at : at + SECTOR] = part
    return bytes(image)
