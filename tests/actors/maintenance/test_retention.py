"""What is too old is not shown, and then not there; everything else stays as it is."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.run_house import button, create_flow, kept_runs, press, runs_end
from tests.actors.event_house import Events
from tests.actors.house import House, at, running_house
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.queries.measurement_messages import QueryTimeSeries, TimeSeriesQuery
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.people.audit import messages as audit
from trunkline.actors.people.organizations.messages import CreateOrg, OrgPost
from trunkline.actors.workflows.flows.messages import FlowShape, GetFlow
from trunkline.limits.table import Limits
from trunkline.store import compaction, keys, sorted_runs
from trunkline.store.backup import verify

DAY_S = 86_400
DAY_MS = 1000 * DAY_S
LONG = "x" * 1000

KEPT: dict[str, float] = {
    "state_keep_days": 10,
    "command_keep_days": 5,
    "log_keep_days": 5,
    "event_keep_days": 20,
    "payload_count_keep_days": 10,
    "retention_pause_s": 0.0001,
}


@pytest.fixture(autouse=True)
def _blocks_of_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are removed by whole blocks, so that each of them can be told from the others here."""
    monkeypatch.setattr(sorted_runs, "BLOCK_ROWS", 1)
    monkeypatch.setattr(compaction, "BLOCK_ROWS", 1)


async def removed(house: House) -> dict[str, int]:
    """Remove everything that is too old, with the memory of a server that was just started; what was removed."""
    retention = Retention(house.system)
    await house.flush()
    with trio.fail_after(PATIENCE_S):
        await retention.remove_expired()
    return {kind: number for kind, number in retention.removed.items() if number}


def stored(house: House, db: str, prefix: bytes) -> int:
    with house.system.store.snapshot() as snapshot:
        return snapshot.count(db, prefix, keys.prefix_end(prefix))


def check(house: House) -> None:
    """Lists, indexes and counts agree."""
    assert verify(house.system.store, partial(records.index_keys, KINDS)).problems == []


async def logged(house: House, device: bytes) -> list[dict[str, Any]]:
    query = devices.History(limit=1000)
    message = read_messages.GetLogEntries(
        application=house.application, device=device, query=query, now_ms=house.clock.wall_ms()
    )
    found: list[dict[str, Any]] = await house.read(message)
    return found


async def series(house: House, device: bytes) -> list[dict[str, Any]]:
    body = {"deviceIds": [device.hex()], "duration": 400 * DAY_MS, "aggregation": "NONE"}
    query = QueryTimeSeries(
        application=house.application,
        body=msgspec.convert(body, TimeSeriesQuery),
        reach=None,
        now_ms=house.clock.wall_ms(),
    )
    points: list[dict[str, Any]] = (await house.read(query))["devices"][device.hex()]["points"]
    return points


async def shown(house: House, ids: list[bytes]) -> list[Any]:
    """All that can be read of devices: histories, composite states now and earlier, series."""
    now_ms = house.clock.wall_ms()
    found: list[Any] = []
    for id in ids:
        found += [await house.states(id), await house.states(id, limit=1, sortDirection="desc")]
        found += [await house.commands(id), await logged(house, id), await series(house, id)]
        for age in (0, 3, 9, 12, 40):
            found.append(await house.composite(id, end=now_ms - age * DAY_MS if age else 0))
    return found


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data", limits=Limits.off().override(KEPT)) as house:
        yield house


async def test_nothing_is_removed_unless_the_operator_says_so(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        device = await house.device()
        await house.report(device, {"data": {"a": 1}})
        await house.command(device, "go")
        event = await Events(house).create()
        house.clock.pass_s(10_000 * DAY_S)
        await house.report(device, {"data": {"a": 2}})
        assert await removed(house) == {}
        assert [each["data"] for each in await house.states(device)] == [{"a": 1}, {"a": 2}]
        assert len(await house.commands(device)) == 1
        assert (await Events(house).get(event))["subject"] == "it is hot"


async def test_entries_go_when_they_are_too_old_and_the_newest_state_stays(house: House) -> None:
    device, silent = await house.device(), await house.device()
    await house.report(silent, {"data": {"label": LONG}})
    await house.report(silent, {"data": {"a": 1}, "time": at(1)})
    for day in range(30):
        await house.report(device, {"data": {"a": day}})
        await house.command(device, f"command {day}")
        await house.ask(device, devices.SetConnectionStatus(body=devices.Connected()))
        house.clock.pass_s(DAY_S)
    before = await shown(house, [device, silent])
    assert len(before[0]) == 10, "what is too old is not shown, even before it is removed"
    # The silent device has an older state than the newest one, whose long text the composite state shows.
    assert before[10] == [{"time": at(1), "data": {"a": 1}}]
    assert before[15] == {"label": (at(0), LONG), "a": (at(1), 1)}
    counts = await house.payloads(device)
    assert await removed(house) == {"state": 20, "command": 25, "logEntry": 25, "payloadCount": 20 + 20}
    assert await shown(house, [device, silent]) == before
    assert stored(house, keys.COMMANDS, device) == stored(house, keys.LOGS, device) == 5
    assert await house.payloads(device) == {kind: number // 3 for kind, number in counts.items()}
    assert await removed(house) == {}
    house.forget()
    assert await shown(house, [device, silent]) == before, "an actor that is loaded again knows the same"
    await house.report(silent, {"data": {"label": "short"}})
    assert await removed(house) == {"state": 2, "payloadCount": 1}
    assert await house.composite(silent) == {
        "label": (at(30 * DAY_MS), "short"),
        "a": (at(1), 1),
    }
    check(house)


@pytest.mark.parametrize("seed", range(2))
async def test_the_removal_changes_nothing_that_can_be_read(tmp_path: Path, seed: int) -> None:
    """Whatever was reported in which order, whatever the size of the parts, and beside new reports."""
    chance = random.Random(seed)
    few: dict[str, float] = {"removed_entries_max": 7, "expired_devices_max": 2, "searched_devices_max": 3}
    async with running_house(tmp_path / "data", limits=Limits.off().override(KEPT | few)) as house:
        ids = [await house.device() for _ in range(8)]
        for _ in range(300):
            values = {"a": chance.randrange(9), "label": chance.choice(["", "short", LONG])}
            data = {name: values[name] for name in values if chance.random() < 0.6} or {"b": 1}
            time_ms = house.clock.wall_ms() - chance.randrange(12 * DAY_MS) * chance.randrange(2)
            await house.report(chance.choice(ids[1:]), {"data": data, "time": time_ms})
            if chance.random() < 0.3:
                await house.command(chance.choice(ids[1:]), "go")
            house.clock.pass_s(chance.randrange(8_000))
        house.clock.pass_s(chance.randrange(20) * DAY_S)
        before = await shown(house, ids)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(removed, house)
            for _ in range(20):
                await house.report(ids[0], {"data": {"a": 1}})
                await trio.lowlevel.checkpoint()
        assert await removed(house) == {}
        assert (await shown(house, ids))[10:] == before[10:]
        check(house)


async def test_events_go_some_days_after_their_last_change(house: House) -> None:
    events = Events(house)
    ids = [await events.create(subject=f"event {number}", message="hot") for number in range(60)]
    house.clock.pass_s(19 * DAY_S)
    for _ in range(40):
        await events.patch(ids[0], comment="still hot")
    house.clock.pass_s(2 * DAY_S)
    assert await removed(house) == {"event": 59, "payloadCount": 1}
    assert [each["subject"] for each in (await events.page())["items"]] == ["event 0"]
    assert (await events.page())["totalCount"] == 1
    house.clock.pass_s(20 * DAY_S)
    assert await removed(house) == {"event": 1}
    assert events.beside() == {}
    check(house)


async def test_an_audit_log_without_new_entries_loses_its_old_ones(house: House) -> None:
    user = bytes.fromhex(await server_users.add_user(house.system, "someone@example.com", "Correct-horse-1"))
    org = house.system.ids.new(house.clock.wall_ms())
    create = CreateOrg(body=OrgPost(name="works"), user=user)
    await house.system.ask(Ref("org", ROOT, org), create)
    entry = audit.AuditEntry(
        actor_id=user.hex(),
        actor_type="User",
        actor_name="someone",
        ip_address="127.0.0.1",
        request_resource="device",
        request_action="patch",
        request_path_params={},
        request_query_params={},
        response_status=200,
    )
    for _ in range(120):
        await house.system.ask(Ref("auditLog", ROOT, org), audit.AddEntry(entry=entry))
    house.clock.pass_s(366 * DAY_S)
    assert await removed(house) == {"auditEntry": 120}
    check(house)


async def test_an_application_is_searched_again_when_its_next_entry_is_too_old(house: House) -> None:
    """And not before: with nothing to remove, the search costs nothing."""
    device = await house.device()
    await house.report(device, {"data": {"a": 1}})
    house.clock.pass_s(9.5 * DAY_S)
    await house.report(device, {"data": {"a": 2}})
    await house.flush()
    retention = Retention(house.system)
    reads = count_searches(house)
    await retention.remove_expired()
    first = reads()
    house.clock.pass_s(0.4 * DAY_S)
    await retention.remove_expired()
    assert reads() == first + 1, "only the list of applications was read"
    house.clock.pass_s(0.1 * DAY_S + 1)
    await retention.remove_expired()
    assert retention.removed["state"] == 1


def count_searches(house: House) -> Any:
    """Count the long reads of the system from now on."""
    number, read = 0, house.system.read

    async def counted(query: Any) -> Any:
        nonlocal number
        number += 1
        return await read(query)

    house.system.read = counted  # type: ignore[method-assign,assignment]
    return lambda: number


async def test_what_is_kept_of_runs_goes_after_some_days(tmp_path: Path) -> None:
    limits = Limits.off().override(
        {"run_records_keep_days": 10, "removed_entries_max": 3, "retention_pause_s": 0.0001}
    )
    async with running_house(tmp_path / "data", limits=limits) as house:
        nodes = [{"type": "ThrowErrorNode", "id": "t"}]
        flow = await create_flow(house, [button(["t"])], nodes)
        await create_flow(house, [button(["t"])], nodes)
        for _ in range(15):
            await press(house, flow)
            await runs_end(house)
            house.clock.pass_s(DAY_S)
        runs = kept_runs(house, flow)
        assert await removed(house) == {"flowRun": 5, "flowMinute": 5}
        assert kept_runs(house, flow) == runs[5:]
        assert stored(house, keys.FLOWS, keys.flow_minutes_prefix(house.application, flow.id)) == 10
        assert await removed(house) == {}
        house.clock.pass_s(20 * DAY_S)
        await press(house, flow)
        await runs_end(house)
        assert await removed(house) == {"flowRun": 10, "flowMinute": 10}
        get = GetFlow(application=house.application, flow=flow.id, query=FlowShape())
        assert (await house.read(get))["stats"]["runCount"] == 16, "the sums of all runs stay"
        check(house)
