"""A copy of a store takes the place of another one only when it is whole and sound."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.checksums import sealed
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import FormatUnsupported, StoreDamaged
from trunkline.store.follower import followed
from trunkline.store.migrations import FORMAT, FORMAT_KEY
from trunkline.store.store_copy import INCOMING, copy_command, new_file, take_copy


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A data directory whose store has `before`."""
    write(tmp_path / "one", b"before")
    return tmp_path / "one"


def opened(directory: Path) -> Store:
    """A store with the keys of all."""
    return Store.open(directory, encryption_keys=directory.parent / "keys")


def write(directory: Path, value: bytes) -> None:
    with opened(directory) as store:
        batch = Batch()
        batch.put(keys.RECORDS, b"key", value)
        store.journal.submit(batch)
        store.journal.flush()


def read(directory: Path) -> bytes | None:
    with opened(directory) as store, store.snapshot() as snapshot:
        return snapshot.get(keys.RECORDS, b"key")


def copy_from(other: Path, directory: Path) -> Path:
    file = new_file(directory)
    with file.open("wb") as target:
        subprocess.run(copy_command(other), stdout=target, check=True)
    return file


def test_the_copy_of_a_store_that_is_in_use_takes_the_place(directory: Path, tmp_path: Path) -> None:
    write(tmp_path / "two", b"copied")
    with opened(tmp_path / "two"):
        copy_from(tmp_path / "two", directory)
    assert read(directory) == b"before"
    take_copy(directory)
    assert read(directory) == b"copied"
    assert not (directory / INCOMING).exists()


def test_a_damaged_copy_is_refused(directory: Path, tmp_path: Path) -> None:
    write(tmp_path / "two", b"copied")
    file = copy_from(tmp_path / "two", directory)
    with file.open("r+b") as copy:
        copy.truncate(file.stat().st_size - 4096)
    with pytest.raises(StoreDamaged, match=r"The copy .* is damaged"):
        take_copy(directory)
    assert read(directory) == b"before"
    new_file(directory)
    assert not data_file(directory / INCOMING).read_bytes()


def test_a_copy_of_another_format_is_refused(directory: Path, tmp_path: Path) -> None:
    write(tmp_path / "two", b"copied")
    with followed(tmp_path / "two") as memory_map, memory_map.env.begin(write=True) as transaction:
        value = sealed(FORMAT_KEY, codec.encode(FORMAT + 1))
        transaction.put(FORMAT_KEY, value, db=memory_map.handles[keys.META])
    copy_from(tmp_path / "two", directory)
    with pytest.raises(FormatUnsupported):
        take_copy(directory)
    assert read(directory) == b"before"


def test_what_is_no_store_is_not_copied(tmp_path: Path) -> None:
    done = subprocess.run(copy_command(tmp_path), capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"trunkline: ")
