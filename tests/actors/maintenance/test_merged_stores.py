"""Two stores that have grown apart become one: runs, commits, triggers and counts of both are right in it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, press, waiting_triggers
from tests.actors.house import START_MS, House, running_again, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance import division
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.people.audit import messages as audit
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode
from trunkline.store.directory import KEYS_FILE, SECRET
from trunkline.store.env import Store
from trunkline.store.errors import StoreDamaged, StoreError
from trunkline.store.partition_switch import steps
from trunkline.store.partitions import (
    Switch,
    partition_count,
    partition_directory,
    stored_count,
    switch_of,
    write_partition_count,
)
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import runs_of
from trunkline.store.store_files import opened_read_only

FARM = b"f" * 12
FIRST_FLUSHES, SECOND_FLUSHES = 3, 5


async def divide(data: Path, count: int) -> list[str]:
    """Divide a data directory; what was told."""
    told: list[str] = []
    settings = Settings(data_dir=str(data))
    await trio.to_thread.run_sync(partial(division.divide, settings, count, told.append))
    return told


async def live(house: House, flushes: int) -> dict[str, Any]:
    """Let two devices report into so many runs, later ones over earlier ones, and a workflow wait."""
    devices = [await house.device(), await house.device()]
    for number in range(flushes):
        for at, device in enumerate(devices):
            for second in range(at, 6 + number):
                time_ms = START_MS - 60_000 + second * 1000
                await house.report(device, {"time": time_ms, "data": {"a": number * 100 + second}})
        await house.command(devices[0], f"command {number}")
        if number < flushes - 1:
            await house.flush()
            house.clock.pass_s(1)
    wait = node("s", "StoreValueNode", {"keyName": "k", "valueType": "json", "value": "[1]"}, ["d"])
    flow = await create_flow(house, [button(["s"])], [wait, node("d", "DelayNode", {"delay": 59})])
    house.clock.set_wall(START_MS + 30_000)
    for _ in range(flushes):  # each partition notes the calls that it has answered, also of one organization
        entry = audit.AuditEntry(
            actor_id="0" * 24,
            actor_type="User",
            actor_name="someone",
            ip_address="127.0.0.1",
            request_resource="device",
            request_action="patch",
            request_path_params={},
            request_query_params={},
            response_status=200,
        )
        await house.system.ask(Ref("auditLog", ROOT, FARM), audit.AddEntry(entry=entry))
    for number in range(2):
        await press(house, flow, {"n": number})
    with trio.fail_after(PATIENCE_S):
        while len(waiting_triggers(house)) < 3:  # two triggers and the marker of the first run
            await trio.lowlevel.checkpoint()
    return await seen(house, devices)


async def seen(house: House, devices: list[bytes]) -> dict[str, Any]:
    """What an application says of its devices."""
    found: dict[str, Any] = {"application": house.application, "devices": devices}
    for device in devices:
        found[device.hex()] = [
            await house.states(device),
            await house.composite(device),
            await house.commands(device),
            await house.payloads(device),
        ]
    return found


@asynccontextmanager
async def apart(folder: Path) -> AsyncIterator[tuple[Path, House, list[dict[str, Any]]]]:
    """A data directory of two partitions, of which each was served alone, and what they said."""
    data, other = folder / "data", folder / "other"
    said = []
    async with running_house(data) as house:
        said.append(await live(house, FIRST_FLUSHES))
    other.mkdir()
    for name in (SECRET, KEYS_FILE):
        shutil.copy(data / name, other / name)
    async with running_house(other) as second:
        said.append(await live(second, SECOND_FLUSHES))
    place = partition_directory(data, 1)
    place.mkdir(parents=True)
    (other / "store").rename(place / "store")
    (other / "results").rename(place / "results")
    write_partition_count(data, 2)
    yield data, house, said


async def test_two_stores_become_one(tmp_path: Path) -> None:
    async with apart(tmp_path) as (data, house, said):
        await divide(data, 1)
        assert verify(data).problems == []
        async with running_again(data, house, 60_000) as again:
            numbers = [keys.trigger_number(key) for key in waiting_triggers(again)]
            assert len(set(numbers)) == 4, "the triggers of both, which had the same numbers"
            for each in said:
                of_it = House(again.system, again.clock, each["application"])
                assert await seen(of_it, each["devices"]) == each
                await of_it.report(each["devices"][0], {"data": {"a": 7}})
                assert (await of_it.states(each["devices"][0]))[-1]["data"] == {"a": 7}
            with again.system.store.snapshot() as snapshot:
                assert len(runs_of(snapshot)) == SECOND_FLUSHES, "the runs of both, side by side"
                assert records.total(snapshot, APPLICATION, ROOT) == 2
                assert records.total(snapshot, audit.AUDIT_ENTRY, FARM) == FIRST_FLUSHES + SECOND_FLUSHES


async def test_the_latest_counts_go_with_their_application(tmp_path: Path) -> None:
    """They are beside what devices reported, and stay there when nothing is to be flushed."""
    async with apart(tmp_path) as (data, _, said):
        await divide(data, 1)
        counted = [keys.app_counts_key(each["application"], 7) for each in said]
        with Store.open(data) as store:
            batch = Batch()
            for number, key in enumerate(counted):
                batch.add(keys.COUNTS, key, {"state": number + 1})
            store.journal.submit(batch)
        await divide(data, 2)
        found: list[Any] = []
        for number in range(2):
            with (
                opened_read_only(partition_directory(data, number)) as memory_map,
                Snapshot(memory_map) as snapshot,
            ):
                assert snapshot.count(keys.ARRIVALS, b"", None) == 1
                found += [raw for key in counted if (raw := snapshot.get(keys.COUNTS, key)) is not None]
        assert sorted(decode(raw)["state"] for raw in found) == [1, 2]


async def test_two_stores_become_two_others(tmp_path: Path) -> None:
    """The application of the second one stays with more partitions, and so do its keys."""
    async with apart(tmp_path) as (data, _, said):
        await divide(data, 3)
        placed = {id: each.number for each in division.partitions_of(data) for id in each.applications}
        assert placed.keys() == {each["application"].hex() for each in said}
        assert placed[said[1]["application"].hex()] == 1
        for number in range(3):
            assert verify(data, partition=number).problems == []


async def test_a_division_refuses_what_it_cannot_divide(tmp_path: Path) -> None:
    async with apart(tmp_path) as (data, _, _):
        shutil.copytree(partition_directory(data, 1), partition_directory(data, 2))
        with pytest.raises(StoreError, match=r"holds a store, and .* says that there are 2 partitions"):
            await divide(data, 4)
        write_partition_count(data, 3)
        with pytest.raises(StoreDamaged, match="is in the partitions 1 and 2"):
            await divide(data, 1)
        shutil.rmtree(partition_directory(data, 2))
        with pytest.raises(StoreError, match=r"data\.mdb"):  # as where a disk is not mounted
            await divide(data, 1)
        with pytest.raises(StoreError, match="at most 64 partitions"):
            await divide(data, 65)
        assert stored_count(data) == 3
        assert not list(data.rglob("store.new"))
        assert not list(data.glob("backups"))


async def test_after_each_step_of_the_switch_it_can_be_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens the directory meanwhile is told the command."""
    async with apart(tmp_path) as (data, _, _):
        pass
    stopped: list[Switch] = []

    def stop(_directory: Path, switch: Switch) -> None:
        stopped.append(switch)
        raise StoreError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(division, "complete", stop)
        with pytest.raises(StoreError, match="stopped"):
            await divide(data, 1)
    (switch,) = stopped
    for number in range(100):
        copy = tmp_path / f"copy {number}"
        shutil.copytree(data, copy)
        left = steps(copy, switch)
        made = sum(1 for _ in zip(range(number), left, strict=False))
        if switch_of(copy) is None:
            break
        with pytest.raises(StoreError, match=f"run: trunkline partition --count 1 --data {copy}"):
            partition_count(copy)
        told = await divide(copy, 1)
        assert told[0] == "Completing the change to one partition, which was interrupted."
        assert verify(copy).problems == []
        assert not (copy / "partitions").exists()
    assert made > 5


async def test_a_partition_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    async with apart(tmp_path) as (data, _, said):
        place, disk = partition_directory(data, 1), tmp_path / "disk"
        place.rename(disk)
        place.symlink_to(disk)
        (tmp_path / "third").mkdir()
        partition_directory(data, 2).symlink_to(tmp_path / "third")
        await divide(data, 3)
        assert sum(len(each.applications) for each in division.partitions_of(data)) == len(said)
        assert (disk / "store").is_dir()
        assert (tmp_path / "third" / "store").is_dir()
        await divide(data, 1)
        assert verify(data).problems == []
        assert list(disk.iterdir()) == list((tmp_path / "third").iterdir()) == []
