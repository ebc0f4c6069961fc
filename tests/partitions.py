"""New data directories with several partitions. Opening one makes none that is missing, so they are made here."""

from __future__ import annotations

from pathlib import Path

from trunkline.store.directory import KEYS_FILE, STORE
from trunkline.store.env import MIB, Store
from trunkline.store.keyring import Keyring
from trunkline.store.partitions import partition_directory, write_partition_count
from trunkline.store.store_draft import StoreDraft


def make_partitions(data_dir: Path, count: int) -> None:
    """Give a data directory that is new so many partitions."""
    Store.open(data_dir).close()
    for number in range(1, count):
        folder = partition_directory(data_dir, number) / STORE
        draft = StoreDraft(folder, size_bytes=MIB, batch_bytes=MIB)
        draft.finish(Keyring.read(data_dir / KEYS_FILE), divided=True)
        draft.close()
    write_partition_count(data_dir, count)
