"""The sweeper leaves nothing behind and touches nothing else, wherever it is stopped.

The file is long because it fills in data of every kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog.testing
import trio
import trio.testing

from tests.actors.engine.run_house import create_flow, trigger
from tests.actors.experience_house import fill_experience
from tests.actors.flow_house import workflow
from tests.actors.house import House, ManualClock, running_house
from tests.certificates import make_certificate
from trunkline.actors import boot
from trunkline.actors.access.certificates import CertificatePost
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import messages, records
from trunkline.actors.core.records.kept_answers import KeptAnswer, keep_answer
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import NotFound, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events import messages as events
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.tables import messages as tables
from trunkline.actors.data.tables.check import row_problems
from trunkline.actors.data.topics import publication as topics
from trunkline.actors.data.topics.session_actor import ChangeSubscriptions, OpenSession
from trunkline.actors.data.topics.session_records import Options
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.maintenance import sweep as purge
from trunkline.actors.people.accounts.tokens import TokenPost
from trunkline.actors.platform.applications import messages as applications
from trunkline.actors.platform.applications.keys import KeyPost
from trunkline.actors.workflows.flows import messages as flow_messages
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode

Space = dict[str, dict[bytes, bytes]]
DAY_S = 86_400


def space(system: System) -> Space:
    """Everything that is stored; a count of no records is as good as none."""
    found: Space = {}
    with system.store.snapshot() as snapshot:
        for db in keys.DATABASES:
            if db not in (keys.ARRIVALS, keys.SEGMENTS, keys.RUNS):
                found[db] = dict(snapshot.range(db, b"", None))
        for key in (keys.RUNS_KEY, keys.FLUSHED_KEY):
            found[keys.META].pop(key, None)
        devices = {keys.block_device(key) for key in snapshot.keys(keys.RUNS, b"", None)}
        devices |= {device for window in system.store.arrivals.windows for device in window.buffers}
        # What has arrived stays on the disk until it is flushed; what counts is what can be read of a device.
        heads = {device: snapshot.head(device).head for device in devices}
        found[keys.ARRIVALS] = {device: head for device, head in heads.items() if head is not None}
        rows = {
            device: [row for part in snapshot.points(device) for row in part.rows()] for device in devices
        }
        found[keys.RUNS] = {device: encode(of) for device, of in rows.items() if of}
    total = keys.TOTAL_PREFIX
    found[keys.COUNTS] = {
        key: value
        for key, value in found[keys.COUNTS].items()
        if not key.startswith(total) or decode(value).get("n", 0) != 0
    }
    return found


def check(system: System) -> None:
    """Lists, indexes and counts agree."""
    assert verify(system.store, partial(records.index_keys, KINDS), row_problems).problems == []
    with system.store.snapshot() as snapshot:
        assert list(records.unique_problems(KINDS, snapshot)) == []


@asynccontextmanager
async def opened(path: Path, **settings: Any) -> AsyncIterator[House]:
    """A system on what `path` holds, in which nobody sweeps but the test. Its house is still to be built."""
    clock = ManualClock()
    chosen = Settings(data_dir=str(path), limits=Limits.off(), experience_domains="*.example", **settings)
    with boot.opened(chosen, clock) as system:
        async with trio.open_nursery() as nursery:
            await nursery.start(system.run)
            yield House(system, clock, ROOT)
            nursery.cancel_scope.cancel()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A system with an application."""
    async with opened(tmp_path / "data") as house:
        yield house_of(house, await application(house, filled=False))


async def application(house: House, *, filled: bool = True) -> Ref:
    """An application with devices that reported, deleted devices, tables, events, keys, tokens and a slug."""
    ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
    body = applications.ApplicationPost(name="to be deleted", endpoint_slug=ref.id.hex())
    await house.system.ask(ref, applications.CreateApplication(user=ROOT, body=body))
    if not filled:
        return ref
    creator = messages.Creator(ROOT.hex(), "user", "owner")
    for resource, plain, type in (
        ("applicationKey", {"description": "a key"}, KeyPost),
        ("applicationApiToken", {"name": "a token", "scope": ["all.Application"]}, TokenPost),
    ):
        for _ in range(3):
            message = messages.CreateRecord(resource=resource, body=msgspec.convert(plain, type), by=creator)
            await house.system.ask(ref, message)
    certificate = CertificatePost(certificate=make_certificate("a certificate"))
    message = messages.CreateRecord(resource="applicationCertificate", body=certificate, by=creator)
    await house.system.ask(ref, message)
    await fill_experience(house, ref.id)
    for number in range(3):
        post = events.EventPost(level="error", subject="hot", message="too hot", data=[number])
        log = Ref("eventLog", ref.id, ref.id)
        made = (await house.system.ask(log, events.CreateEvent(body=post, by=creator))).value
        for _ in range(number):
            patch = events.EventPatch(state="acknowledged", comment="seen")
            await house.system.ask(log, events.PatchEvent(event=made.id, body=patch, by=creator))
    inside = House(house.system, house.clock, ref.id)
    for number in range(5):
        device = await reported(inside, f"device {number}")
        if number % 2:
            await inside.ask(device, devices.DeleteDevice())
    await table(inside)
    await messages_of_topics(inside)
    for _ in range(2):
        flow = await workflow(inside, creator)
    await house.system.ask(flow, flow_messages.DeleteFlow())
    await create_flow(inside, [trigger("timer", [], config={"seconds": 31_000_000})], [])
    return ref


async def messages_of_topics(house: House) -> None:
    """A retained message, a will, and a session with a message that waits for it."""
    publisher = Ref("publisher", house.application, b"a client....")
    session = Ref("mqttSession", house.application, b"a sleeper...")
    will = topics.ConnectClient(will=topics.Publication("gone", b"x"), retain_will=False, origin=None)
    await house.system.ask(publisher, will)
    opened = await house.system.ask(session, OpenSession(client_id="sleeper", expiry_s=3600, clean=False))
    id = opened.value.record.id
    added = ChangeSubscriptions(session=id, added={"a/#": Options(1)}, removed=())
    await house.system.ask(session, added)
    publication = topics.Publication("a/b", b"y" * 1000, 1)
    message = topics.PublishFromClient(publication=publication, retain=True, origin=None)
    await house.system.ask(publisher, message)


async def table(house: House) -> Ref:
    """A data table with rows, and with rows and a column that are out of sight already."""
    ref = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
    columns = [{"name": name, "dataType": "number", "constraint": "unique"} for name in ("a", "b")]
    post = msgspec.convert({"name": "stock", "columns": columns}, tables.TablePost)
    await house.system.ask(ref, tables.CreateDataTable(body=post))
    await insert(house, ref, "a", "b")
    await house.system.ask(ref, tables.TruncateRows())
    await insert(house, ref, "a", "b")
    await house.system.ask(ref, tables.RemoveColumn(query=tables.ColumnChoice(column_name="b")))
    await insert(house, ref, "a", base=10)
    return ref


async def insert(house: House, table: Ref, *columns: str, base: int = 0) -> None:
    rows = [dict.fromkeys(columns, base + number) for number in range(5)]
    await house.system.ask(table, tables.InsertRows(body=rows))


async def reported(house: House, name: str) -> bytes:
    """A device with a history in every database."""
    device = await house.device(name=name, tags=[{"key": "k", "value": "v"}])
    house.clock.pass_s(3600)
    for number in range(4):
        await house.report(device, {"data": {"a": number}})
        await house.command(device, "go", payload={"n": number})
        status = devices.SetConnectionStatus(body=devices.Connected())
        await house.system.ask(house.ref(device), status, keep_some_answer)
        house.clock.pass_s(1)
    return device


def keep_some_answer(actor: Actor, _value: Any) -> None:
    """Keep an answer, as for a call with an Idempotency-Key."""
    answer = KeptAnswer(b"a request", 200, [], b"{}")
    keep_answer(actor.system, actor.writes(), actor.ref, b"a digest", answer)


async def sweep_all(system: System, after_each: Callable[[], Any] = lambda: None) -> int:
    """Sweep until nothing is left to do; the number of slices."""
    slices = 0
    while await purge.sweep(system):
        slices += 1
        after_each()
    return slices


# Applications.


async def test_nothing_is_left_of_a_deleted_application(house: House) -> None:
    await reported(house, "neighbour")
    await application(house)
    await sweep_all(house.system)
    await house.flush()
    before = space(house.system)
    doomed = await application(house)
    # Triggers are removed by the runner, which has no more to do with those of an application that is gone.
    assert {db for db, entries in space(house.system).items() if entries != before[db]} == {*before} - {
        keys.TRIGGERS
    }
    ids = device_ids(house.system, doomed)
    await house.flush()
    await house.system.ask(doomed, applications.DeleteApplication())
    assert await sweep_all(house.system) >= 1
    assert space(house.system) == before
    check(house.system)
    await house.flush()
    assert space(house.system)[keys.RUNS] == before[keys.RUNS]
    await house.flush()  # the next window: until then streams may resume from what was reported
    with house.system.store.snapshot() as snapshot:
        for db in (keys.ARRIVALS, keys.SEGMENTS, keys.RUNS, keys.TIMELINE):
            for key, value in snapshot.range(db, b"", None):
                assert not any(id in key or id in value for id in ids), db


@pytest.mark.parametrize("length", [1, 2, 3, 7, 50])
async def test_wherever_a_slice_ends_all_agree(
    house: House, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "SLICE_KEYS", length)
    before = space(house.system)
    doomed = await application(house)
    devices_in_it = [house_of(house, doomed).ref(id) for id in device_ids(house.system, doomed)]
    await house.system.ask(doomed, applications.DeleteApplication())
    sizes = [size(space(house.system))]

    def after_each() -> None:
        check(house.system)
        sizes.append(size(space(house.system)))

    await sweep_all(house.system, after_each)
    removed = [first - second for first, second in pairwise(sizes)]
    # A record goes with its index entries, and a count that reaches nought is not seen any more.
    assert max(removed) <= length + len(EVENT.indexes) + len(EVENT.facet_indexes) + 1
    assert min(removed) >= 0
    assert space(house.system) == before
    for ref in devices_in_it:
        with pytest.raises(NotFound):
            await house.system.ask(ref, devices.SendCommand(body=devices.CommandPost(name="go")))


def size(found: Space) -> int:
    return sum(len(entries) for entries in found.values())


def house_of(house: House, application: Ref) -> House:
    return House(house.system, house.clock, application.id)


def device_ids(system: System, application: Ref) -> list[bytes]:
    with system.store.snapshot() as snapshot:
        return [id for id, _ in records.scan(snapshot, DEVICE, application.id)]


async def test_nobody_writes_beside_the_sweep(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that passed the fences before the deletion may come after it; what it wrote would stay for ever."""
    monkeypatch.setattr(purge, "SLICE_KEYS", 5)
    before = space(house.system)
    doomed = await application(house)
    inside = house_of(house, doomed)
    ids = device_ids(house.system, doomed)
    await house.system.ask(doomed, applications.DeleteApplication())
    while await purge.sweep(house.system):
        for id in ids:
            with pytest.raises(NotFound):
                await inside.report(id, {"data": {"a": 1}})
            with pytest.raises(NotFound):
                await house.system.ask_all(
                    [inside.ref(id)], devices.SendCommand(body=devices.CommandPost(name="go"))
                )
        with pytest.raises(NotFound):
            await inside.device()
    assert space(house.system) == before


async def test_two_applications_are_swept_one_after_the_other(house: House) -> None:
    before = space(house.system)
    doomed = [await application(house) for _ in range(2)]
    for ref in doomed:
        await house.system.ask(ref, applications.DeleteApplication())
    await sweep_all(house.system)
    assert space(house.system) == before


@pytest.mark.slow
async def test_a_sweep_goes_on_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "SLICE_KEYS", 10)
    async with opened(tmp_path) as house:
        before = space(house.system)
        doomed = await application(house)
        await house.system.ask(doomed, applications.DeleteApplication())
    for lives in range(1, 100):
        async with opened(tmp_path) as house:
            check(house.system)
            for _ in range(3):
                more = await purge.sweep(house.system)
            left = space(house.system)
        if not more:
            assert lives > 2
            assert left == before
            return
    raise AssertionError("there was no end to it")


async def test_the_sweeper_works_by_itself(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running_house(tmp_path) as house:
        before = space(house.system)
        doomed = await application(house)
        await house.system.ask(doomed, applications.DeleteApplication())
        for _ in range(100_000):
            await trio.sleep(1)
            if space(house.system) == before:
                return
        raise AssertionError("something was left")


async def test_a_full_store_is_emptied_by_deleting(tmp_path: Path) -> None:
    async with opened(tmp_path, map_size_bytes=2**20, store_size_max_bytes=2**21) as house:
        doomed = await application(house)
        inside = house_of(house, doomed)
        device = await inside.device(attributes={"label": "string"})
        with pytest.raises(StorageFull):
            await fill(inside, device)
        # For a second the store lets in what deletes; so do these.
        await house.system.ask(doomed, applications.DeleteApplication())
        await sweep_all(house.system)
        with house.system.store.snapshot() as snapshot:
            assert records.total(snapshot, APPLICATION, ROOT) == 0
        check(house.system)


async def fill(house: House, device: bytes) -> None:
    while True:
        await house.report(device, {"data": {"label": "x" * 60_000}})
        house.clock.pass_s(1)


async def test_a_sweep_that_fails_is_put_off(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the sweep itself does not end the server; it is logged."""
    async with running_house(tmp_path) as house:
        monkeypatch.setattr(purge, "SLICE_KEYS", "not a number")
        doomed = await application(house)
        await house.system.ask(doomed, applications.DeleteApplication())
        with structlog.testing.capture_logs() as logs:
            for _ in range(100_000):
                await trio.sleep(1)
                if logs:
                    break
        assert logs[0]["event"] == "sweep failed"
        assert await house.device()


async def write(house: House, db: str, key: bytes, value: bytes) -> None:
    batch = Batch()
    batch.put(db, key, value)
    await house.system.journal.submit(batch).wait()


@pytest.mark.parametrize("damaged", [b"\xff\xff", b"\x01", b"\xa0"], ids=["no CBOR", "a number", "no fields"])
async def test_a_record_that_cannot_be_read_does_not_stop_the_sweep(house: House, damaged: bytes) -> None:
    before = space(house.system)
    doomed, other = await application(house), await application(house)
    inside = house_of(house, doomed)
    device = await inside.device()
    key = keys.record_key(DEVICE.name, doomed.id, device)
    await write(house, keys.RECORDS, key, damaged)
    for ref in (doomed, other):
        await house.system.ask(ref, applications.DeleteApplication())
    with structlog.testing.capture_logs() as logs:
        await sweep_all(house.system)
    assert space(house.system) == before
    # An empty record can be read, and has no index entries of its own.
    expected = [] if damaged == b"\xa0" else [key.hex()]
    assert [log["key"] for log in logs if log["event"] == "stored value cannot be read"] == expected


async def test_a_deleted_device_that_cannot_be_read_is_passed_over(house: House) -> None:
    broken, sound = [await reported(house, name) for name in ("broken", "sound")]
    for device in (broken, sound):
        await house.ask(device, devices.DeleteDevice())
        house.clock.pass_s(60)
    key = keys.record_key(DELETED_DEVICE.name, house.application, broken)
    await write(house, keys.RECORDS, key, b"\xff\xff")
    house.clock.pass_s(94 * DAY_S)
    with structlog.testing.capture_logs() as logs:
        await sweep_all(house.system)
        await sweep_all(house.system)
    with house.system.store.snapshot() as snapshot:
        assert records.find(snapshot, DELETED_DEVICE, house.application, sound) is None
        assert snapshot.get(keys.RECORDS, key) is not None
    assert [log["key"] for log in logs if log["event"] == "stored value cannot be read"] == [key.hex()]


# Devices.


@pytest.mark.parametrize("length", [1, 2, 3, 5, 500])
async def test_a_deleted_device_goes_when_its_time_has_passed(
    house: House, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "SLICE_KEYS", length)
    stays = await reported(house, "stays")
    before = space(house.system)
    for number in range(3):
        old = await reported(house, f"old {number}")
        await house.ask(old, devices.DeleteDevice())
        house.clock.pass_s(60)
    young = await reported(house, "young")
    gone_ms = house.clock.wall_ms()
    house.clock.pass_s(3 * 60)
    await house.ask(young, devices.DeleteDevice())
    deleted_ms = house.clock.wall_ms()

    house.clock.set_wall(gone_ms + 93 * DAY_S * 1000)
    await sweep_all(house.system, lambda: check(house.system))
    with house.system.store.snapshot() as snapshot:
        assert records.total(snapshot, DELETED_DEVICE, house.application) == 1
        assert records.find(snapshot, DELETED_DEVICE, house.application, young) is not None
    assert len(await house.states(stays)) == 4

    house.clock.set_wall(deleted_ms + 93 * DAY_S * 1000)
    assert await sweep_all(house.system) == 0  # to the millisecond
    house.clock.set_wall(deleted_ms + 93 * DAY_S * 1000 + 1)
    await sweep_all(house.system, lambda: check(house.system))
    after = space(house.system)
    # What the application counted by hours stays: it is its history.
    before[keys.COUNTS] = after[keys.COUNTS]
    assert after == before
