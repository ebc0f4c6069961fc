"""A machine without data that is to follow a log: it gets as many partitions as the log has.

Owns the empty stores of a machine that starts for the first time, or after `trunkline cluster rejoin`. Each of them
gets a copy of the data when it is followed (`store/standby.py`).
"""

from __future__ import annotations

from pathlib import Path

from trunkline.actors.maintenance.data_directory import keys_file_of
from trunkline.actors.maintenance.log_connection import answered, log_of
from trunkline.limits.settings import Settings
from trunkline.store import keys, migrations
from trunkline.store.directory import KEYS_FILE, SECRET, STORE, DataDirectory, has_data, remove_begun
from trunkline.store.errors import StoreBroken
from trunkline.store.follower import CLOSE_WAIT_S, MAP_BYTES
from trunkline.store.keyring import Keyring
from trunkline.store.memory_map import MemoryMap
from trunkline.store.partitions import partition_directory, write_partition_count
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_files import opened_read_only


async def prepare_machine(settings: Settings) -> None:
    """Make the stores of all partitions if the directory has none, and the log has several.

    It waits until the log answers. That of the root is made last: without it, all of them are made anew. Raises
    StoreError, also if another partition has data.
    """
    directory = Path(settings.data_dir)
    if has_data(directory) or not (directory / SECRET).exists():
        return
    async with log_of(settings) as place:
        stream = await answered(place.log.look)
    if stream is None or stream.partitions == 1:
        return
    keyring = Keyring.require(keys_file_of(settings) or directory / KEYS_FILE, new=False)
    with DataDirectory.open(directory) as locked:
        for number in range(1, stream.partitions):
            with DataDirectory.open(partition_directory(directory, number), common=directory) as own:
                _make_store(own, keyring)
        write_partition_count(directory, stream.partitions)
        _make_store(locked, keyring)


def _make_store(directory: DataDirectory, keyring: Keyring) -> None:
    """Make an empty store, one of several. On disk when this returns."""
    if has_data(directory.path):
        with opened_read_only(directory.path) as earlier, Snapshot(earlier) as snapshot:
            if snapshot.count(keys.RECORDS, b"", None):
                raise StoreBroken(
                    f"{directory.path} holds data, and {directory.common} holds none. If it is on a disk of its own, "
                    "mount that disk; otherwise put the folder partitions aside."
                )
        return
    remove_begun(directory.path)
    memory_map = MemoryMap(directory.path / STORE, size_bytes=MAP_BYTES, size_max_bytes=None, read_only=False)
    try:
        migrations.stamp(memory_map, keyring, divided=True)
    finally:
        memory_map.close(CLOSE_WAIT_S)
    directory.sync()
    directory.keep()
