"""Files that are written through a map have all of their blocks, so that a full disk is an error and no SIGBUS."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline.store.directory import LOCK_FILE, STORE
from trunkline.store.env import Store
from trunkline.store.mapped_file import open_allocated
from trunkline.store.memory_map import READERS_MAX
from trunkline.store.shared_numbers import SharedNumbers
from trunkline.store.store_files import open_read_only

pytestmark = pytest.mark.disk


def is_whole(path: Path) -> bool:
    found = path.stat()
    return found.st_blocks * 512 >= found.st_size > 0


def test_the_locks_of_a_store_have_their_blocks(open_store: Callable[..., Store]) -> None:
    store = open_store()
    file = store.memory_map.path / LOCK_FILE
    assert is_whole(file)
    assert store.memory_map.env.info()["max_readers"] == READERS_MAX


def test_the_locks_that_a_reader_makes_have_their_blocks(open_store: Callable[..., Store]) -> None:
    """As those of a copy of a backup, which `trunkline check` reads before its first start."""
    store = open_store()
    file = store.memory_map.path / LOCK_FILE
    store.close()
    file.unlink()
    open_read_only(file.parent.parent).close(0)
    assert is_whole(file)


def test_what_processes_tell_each_other_has_its_blocks(tmp_path: Path) -> None:
    SharedNumbers(tmp_path / "shared", 0, 3)
    assert is_whole(tmp_path / "shared")


def test_a_full_disk_is_an_error_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            open_allocated(tmp_path / "file", 32_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / "file").stat().st_size == 0
    os.close(open_allocated(tmp_path / "file", 32_000))
    assert is_whole(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_locks_that_root_makes_belong_to_the_user_of_the_server(open_store: Callable[..., Store]) -> None:
    store = open_store()
    folder = store.memory_map.path
    store.close()
    (folder / LOCK_FILE).unlink()
    os.chown(folder, 65534, 65534)
    assert folder.name == STORE
    open_read_only(folder.parent).close(0)
    assert (folder / LOCK_FILE).stat().st_uid == 65534
