"""What opens a data directory with several partitions: all of it or nothing, and no program that knows none of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.partitions import make_partitions
from trunkline.store import codec, migrations
from trunkline.store.backup import backup
from trunkline.store.blobs import DRAFTS
from trunkline.store.checksums import opened
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import StoreBroken, StoreError
from trunkline.store.keys import META
from trunkline.store.partition_switch import steps
from trunkline.store.partitions import FOLDER, Switch, partition_directory
from trunkline.store.store_files import opened_read_only

pytestmark = pytest.mark.disk


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three partitions."""
    make_partitions(tmp_path / "data", 3)
    return tmp_path / "data"


def number_of(directory: Path, partition: int = 0) -> int:
    """The number of the format as every program reads it, also one that knows no partitions."""
    with opened_read_only(partition_directory(directory, partition)) as memory_map:
        with memory_map.env.begin() as transaction:
            raw = transaction.get(migrations.FORMAT_KEY, db=memory_map.handles[META])
        number: int = codec.decode(opened(migrations.FORMAT_KEY, raw or b"") or b"")
        return number


def test_a_partition_that_is_missing_is_refused_and_never_made(data: Path) -> None:
    place = partition_directory(data, 2)
    shutil.rmtree(place)
    place.mkdir()  # where its disk is to be mounted
    for partition in range(3):
        with pytest.raises(
            StoreBroken, match=r"partitions/2 holds no store, and .* has 3 partitions\. If it"
        ):
            Store.open(data, partition=partition)
    assert not data_file(place).exists()
    place.joinpath("lock").unlink()
    place.rmdir()
    with pytest.raises(StoreBroken, match="holds no store"):
        Store.open(data, partition=2)
    assert not place.exists()


def test_the_root_of_several_partitions_is_not_made_either(data: Path) -> None:
    shutil.rmtree(data / "store")
    with pytest.raises(StoreBroken, match="holds no store"):
        Store.open(data)
    assert not data_file(data).exists()


def test_an_owner_that_starts_again_leaves_what_others_write(data: Path) -> None:
    """The contents of files and the outbox are common to all; only what a crash has left long ago is removed."""
    Store.open(data, partition=1).close()
    (data / "outbox").mkdir(exist_ok=True)
    begun = [data / "contents" / DRAFTS / "begun", data / "outbox" / ".1.eml.0123abcd"]
    left = [data / "contents" / DRAFTS / "left", data / "outbox" / ".2.eml.0123abcd"]
    for path in (*begun, *left):
        path.write_bytes(b"half")
    for path in left:
        os.utime(path, (0, 0))
    for partition in range(3):
        Store.open(data, partition=partition).close()
    assert all(path.exists() for path in begun)
    assert not any(path.exists() for path in left)


def test_there_is_no_partition_beyond_the_last_one(data: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no partition 3: it has 3, and they begin with 0"):
        Store.open(data, partition=3)
    with pytest.raises(StoreError, match="has no partition 1: it has 1"):
        Store.open(tmp_path / "other", partition=1)
    assert not (tmp_path / "other").exists()


def test_to_a_program_that_knows_no_partitions_a_divided_directory_is_of_a_newer_format(data: Path) -> None:
    """It refuses every number above its own, in `Store.open`, in a backup and in a check."""
    for partition in range(3):
        Store.open(data, partition=partition).close()
        assert number_of(data, partition) == migrations.FORMAT + migrations.DIVIDED
        with opened_read_only(partition_directory(data, partition)) as memory_map:
            assert migrations.stored_format(memory_map) == migrations.FORMAT


def test_a_directory_with_one_partition_is_as_it_was(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    assert number_of(tmp_path) == migrations.FORMAT


def test_a_division_that_is_not_complete_keeps_older_programs_out(tmp_path: Path) -> None:
    """Its first step is the mark, and the number of a new store replaces it."""
    Store.open(tmp_path).close()
    (tmp_path / FOLDER).mkdir()
    changes = steps(tmp_path, Switch(1, 2))
    next(changes)
    assert number_of(tmp_path) == migrations.FORMAT + migrations.DIVIDED


def test_one_of_several_partitions_is_not_taken_for_all(data: Path, tmp_path: Path) -> None:
    Store.open(data).close()
    shutil.rmtree(data / FOLDER)
    with pytest.raises(StoreBroken, match="is one of several partitions, and the file partitions/count"):
        Store.open(data)
    with pytest.raises(StoreBroken, match="is one of several partitions"):
        backup(data, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
