"""The data directories of several machines, the disks below them, and the contents of files that all of them reach."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.disk import Disk
from tests.simulation.loose_files import MACHINES
from trunkline.store.directory import KEYS_FILE, SECRET
from trunkline.store.env import Store


def make_machines(here: Path, count: int) -> None:
    """Make the data directories of machines that are new, with the same secrets, and the contents of all."""
    (here / MACHINES).mkdir(mode=0o700, parents=True)
    (here / "contents").mkdir(mode=0o700)
    for number in range(count):
        directory = here / MACHINES / str(number)
        if number:
            directory.mkdir(mode=0o700)
            for name in (SECRET, KEYS_FILE):
                shutil.copy(here / MACHINES / "0" / name, directory / name)
        Store.open(directory, keeps_log=True).close()


def contents_of(here: Path) -> Path:
    """Where all machines have the contents of files: the same path in each life."""
    return here.parent / "contents"


def lead_to_contents(here: Path) -> None:
    """Let the contents of all machines be those of this life."""
    contents = contents_of(here)
    contents.unlink(missing_ok=True)
    contents.symlink_to(here / "contents")


def disks_of(world: Any, here: Path, chance: Random, *, first: bool) -> Disk:
    """The disk of the first machine. The others are in its `machine`."""
    if first:
        make_machines(here, world.machines)
    lead_to_contents(here)
    root = None
    for number in range(world.machines):
        own = Random(chance.getrandbits(64))
        disk = Disk(here / MACHINES / str(number), own, world.virtual.sleep, world.cut, root, whole=here)
        root = root or disk
    assert root is not None
    return root
