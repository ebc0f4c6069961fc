"""Data directories with several partitions, and what their stores hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Server
from tests.e2e.test_exports import export
from tests.e2e.whole_application import Whole, whole_application
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.survey import TOTAL_KEY
from trunkline.store import codec, keys
from trunkline.store.blobs import Blobs
from trunkline.store.file_stores import RESULTS
from trunkline.store.offline_store import SPECIAL
from trunkline.store.partitions import partition_directory
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import runs_of
from trunkline.store.store_files import opened_read_only

Dump = dict[str, dict[bytes, bytes]]
"""By database: its entries."""


def dump(directory: Path, partition: int = 0) -> Dump:
    """All that a store holds, except what it says of itself. In the place of their numbers runs have their age."""
    found: Dump = {}
    with (
        opened_read_only(partition_directory(directory, partition)) as memory_map,
        Snapshot(memory_map) as snapshot,
    ):
        ages = {run.number: age for age, run in enumerate(runs_of(snapshot))}
        for db in keys.DATABASES:
            # `stored` and not `range`, which adds the latest counts to COUNTS.
            entries = ((bytes(key), value[:-4]) for key, value in snapshot.stored(db, b"", None))
            found[db] = {
                aged(key, ages) if db == keys.RUNS else key: value
                for key, value in entries
                if not (db == keys.META and key in SPECIAL) and key != TOTAL_KEY
            }
    return found


def aged(key: bytes, ages: dict[int, int]) -> bytes:
    return ages[int.from_bytes(key[:4], "big")].to_bytes(4, "big") + key[4:]


def union(dumps: list[Dump]) -> Dump:
    """All of several stores, which have no key in common."""
    found: Dump = {db: {} for db in keys.DATABASES}
    for each in dumps:
        for db, entries in each.items():
            assert not found[db].keys() & entries.keys(), db
            found[db] |= entries
    return found


def applications(directory: Path, partition: int = 0) -> dict[bytes, dict[str, Any]]:
    """The applications of a partition, whose number is what it has counted."""
    with (
        opened_read_only(partition_directory(directory, partition)) as memory_map,
        Snapshot(memory_map) as snapshot,
    ):
        found = {each.id: each.doc for each in records.all_of_kind(snapshot, APPLICATION, ROOT)}
        counted: Counter[str] = Counter()
        for doc in found.values():
            counted.update({"n": 1, f"@{doc['ownerId']}": 1})
        raw = snapshot.get(keys.COUNTS, TOTAL_KEY)
        assert counted == Counter({} if raw is None else codec.decode(raw))
        entries = snapshot.keys(keys.INDEXES, *prefix_range(keys.record_prefix("application", ROOT)))
        assert {bytes(key[-12:]) for key in entries} == found.keys()
        return found


def results(directory: Path, count: int) -> dict[str, bytes]:
    """The results of jobs by their names. Each lies in the partition of its application."""
    found: dict[str, bytes] = {}
    for number in range(count):
        known = applications(directory, number)
        folder = partition_directory(directory, number) / RESULTS
        for name in Blobs(folder).names() if folder.is_dir() else ():
            assert bytes.fromhex(name)[:12] in known, name
            found[name] = (folder / name).read_bytes()
    return found


def prefix_range(prefix: bytes) -> tuple[bytes, bytes | None]:
    return prefix, keys.prefix_end(prefix)


async def furnish(server: Server, name: str) -> Whole:
    """An application with all that one may have, and with what its devices and people do."""
    whole = await whole_application(server, name)
    pump = f"{whole.path}/devices/{whole.ids['pump']}"
    for number in range(12):
        at = {"time": f"2024-05-01T12:00:{number:02}.000Z", "data": {"temp": number}}
        await server.call("POST", f"{pump}/state", at)
    await server.call("POST", f"{pump}/command", {"name": "open", "payload": {"n": 1}})
    await server.call("POST", f"{whole.path}/events", {"level": "error", "subject": f"Pump {name}"})
    await server.call("POST", f"{whole.path}/tokens", {"name": "t", "scope": ["all.Application"]})
    await server.call("PATCH", whole.path, {"endpointSlug": f"slug-{name}"})
    await server.call("POST", f"{whole.path}/experience/domains", {"domainName": f"{name}.example"})
    await server.call("POST", f"{whole.path}/experience/slugs", {"slug": f"other-{name}"})
    await server.call("POST", f"{whole.path}/keys", {})
    await export(server, pump)
    return whole
