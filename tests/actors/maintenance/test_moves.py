"""An application is moved to another partition of a server that runs, with all that it has, or it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.house import START_MS, House
from tests.actors.maintenance.partition_houses import LocalPeers, divided, partitions
from tests.actors.maintenance.test_merged_stores import seen
from tests.actors.maintenance.test_sweep import Space, application, check, space
from tests.patience import PATIENCE_S
from trunkline.actors import moving
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance import move_source
from trunkline.actors.maintenance.application_keys import held_keys
from trunkline.actors.maintenance.foreign import markers
from trunkline.actors.maintenance.move_source import MoveSource
from trunkline.actors.maintenance.moves import move
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.applications.messages import (
    ApplicationPatch,
    DeleteApplication,
    PatchApplication,
)
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreFull
from trunkline.store.partitions import MOVE
from trunkline.store.snapshot import Snapshot

TOTAL = keys.total_key(APPLICATION.name, ROOT)


def places_of(*houses: House) -> list[int | None]:
    return [house.system.component(Places).find(house.application) for house in houses]


async def reporting(house: House, count: int = 3) -> list[bytes]:
    """Devices that have reported into several runs, and what is in none yet."""
    devices = [await house.device() for _ in range(count)]
    for number in range(3):
        for at, device in enumerate(devices):
            for second in range(at, 5 + number):
                time_ms = START_MS - 60_000 + second * 1000
                await house.report(device, {"time": time_ms, "data": {"a": number * 100 + second}})
        if number < 2:
            await house.flush()
    return devices


def peers_of(house: House) -> LocalPeers:
    peers: Any = house.system.peers
    assert isinstance(peers, LocalPeers)
    return peers


def without(all: Space, known: Space) -> Space:
    """What is stored beside what was known, but for what a store says of itself."""
    return {
        db: {
            key: value
            for key, value in entries.items()
            if known[db].get(key) != value and key != keys.SKIPPED_KEY and key != TOTAL
        }
        for db, entries in all.items()
    }


async def swept(house: House) -> None:
    """Let the sweep do all that it has to do."""
    with trio.fail_after(PATIENCE_S):
        while await sweep(house.system):
            await house.flush()


async def test_all_of_an_application_is_moved(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        devices = await reporting(house)
        before = await seen(house, devices)
        commits = house.system.store.arrivals.seq
        moved = await move(house.system, first.hex(), "1")
        assert other.system.store.arrivals.seq >= commits, "what comes later has a later number"
        assert moved["before"] == 0
        assert places_of(house, other) == [1, 1]
        assert await seen(other, devices) == before
        await other.report(devices[0], {"time": START_MS, "data": {"a": 7}})
        assert (await other.states(devices[0]))[-1]["data"] == {"a": 7}
        assert (await house.states(devices[0]))[-1]["data"] == {"a": 7}, "asked of the process that has it"
        await house.report(devices[0], {"time": START_MS + 1, "data": {"a": 8}})
        assert (await other.states(devices[0]))[-1]["data"] == {"a": 8}
        with house.system.store.snapshot(own=True) as snapshot:
            assert records.total(snapshot, APPLICATION, ROOT) == 0
        with other.system.store.snapshot(own=True) as snapshot:
            assert records.total(snapshot, APPLICATION, ROOT) == 1


def check_same(found: Space, before: Space) -> None:
    """All is there that was, and what nobody changes is the same; workflows and jobs go on meanwhile."""
    for db in (keys.UNIQUE, keys.ROWS, keys.CELLS, keys.COMMANDS, keys.LOGS, keys.RUNS):
        assert found[db] == before[db], db
    for db in (keys.RECORDS, keys.FLOWS, keys.TIMELINE):
        assert before[db].keys() <= found[db].keys(), db


async def test_everything_of_every_kind_is_moved_and_nothing_stays(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        clean, other_clean = space(house.system), space(other.system)
        ref = await application(house)
        await moving.leave(house.system, ref.id)
        await moving.come(house.system, ref.id)  # clients that were connected are not any more
        await swept(house)  # nor are rows of removed columns
        await house.flush()
        of_it = without(space(house.system), clean)
        assert sum(map(len, of_it.values())) > 100
        house.application = other.application = ref.id
        await move(other.system, ref.id.hex(), "1")
        check_same(without(space(other.system), other_clean), of_it)
        await swept(house)
        assert without(space(house.system), clean) == without(clean, clean)
        check(house.system)
        check(other.system)
        await move(other.system, ref.id.hex(), "0")
        check_same(without(space(house.system), clean), of_it)
        await swept(other)
        assert without(space(other.system), other_clean) == without(clean, clean)


async def test_what_is_left_is_no_damage(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, _):
        ref = await application(house)
        await move(house.system, ref.id.hex(), "1")
        check(house.system)
        while await sweep(house.system):
            check(house.system)
        with house.system.store.snapshot(own=True) as snapshot:
            assert snapshot.get(keys.META, keys.foreign_key(ref.id)) is None


def listed_and_counted(snapshot: Snapshot) -> tuple[list[bytes], int]:
    """The applications of all partitions, and their number."""
    prefix = keys.record_prefix(APPLICATION.name, ROOT)
    found = snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))
    return [bytes(key[-keys.ID_BYTES :]) for key in found], records.total(snapshot, APPLICATION, ROOT)


async def test_calls_go_on_while_an_application_is_moved_to_and_fro(tmp_path: Path) -> None:
    """Each state that was acknowledged is there once, whichever process was asked."""
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as houses:
        devices = await reporting(houses[0])
        acknowledged: dict[bytes, list[int]] = {device: [] for device in devices}
        refused = 0
        is_over = False

        async def send(device: bytes, asked: House) -> None:
            nonlocal refused
            number = 0
            while not is_over:
                number += 1
                value = number * 2 + houses.index(asked)
                state = {"time": START_MS + value, "data": {"b": value}}
                try:
                    await asked.report(device, state)
                except Overloaded:
                    refused += 1
                else:
                    acknowledged[device].append(value)
                await trio.lowlevel.checkpoint()

        async def watch(looking: House) -> None:
            while not is_over:
                listed, total = looking.system.store.look(listed_and_counted, wide=True)
                assert (listed, total) == ([first], 1)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            for asked in houses:
                nursery.start_soon(watch, asked)
                for device in devices:
                    nursery.start_soon(send, device, asked)
            for to in (1, 0, 1):
                await move(houses[0].system, first.hex(), str(to))
                await swept(houses[1 - to])
            is_over = True
        for device in devices:
            found = [state["data"]["b"] for state in await houses[0].states(device) if "b" in state["data"]]
            assert found == sorted(acknowledged[device])
        assert places_of(*houses) == [1, 1]


async def test_what_cannot_be_moved_is_refused(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        for application_id, to, told in (
            ("x", "1", "application: 'x' is not an id; give the 24 hex digits of one."),
            (first.hex(), "2", "partition: there is no partition 2; give 0 to 1."),
            (first.hex(), "-1", "partition: there is no partition -1; give 0 to 1."),
            (first.hex(), "0", "The application is in partition 0 already."),
            ("0" * 24, "1", f"There is no application {'0' * 24}."),
        ):
            with pytest.raises(Invalid) as refusal:
                await move(house.system, application_id, to)
            assert refusal.value.message == told
        partitions_ = other.system.store.partitions
        assert partitions_ is not None
        with partitions_.locked(MOVE), pytest.raises(Overloaded, match="A backup or a check is being made"):
            await move(house.system, first.hex(), "1")
        left = Batch()
        left.put(keys.META, keys.foreign_key(first), b"")
        other.system.component(Places).arriving.add(first)  # the sweep leaves it alone
        await other.system.journal.submit(left).wait()
        with pytest.raises(Overloaded, match="What is left of this application here"):
            await move(house.system, first.hex(), "1")


async def test_one_partition_has_nowhere_to_move_to(house: House) -> None:
    with pytest.raises(Invalid, match="The data has one partition; divide it first"):
        await move(house.system, house.application.hex(), "1")


@pytest.mark.parametrize("step", ["move.prepare", "move.pause", "move.depart"])
async def test_a_move_that_fails_leaves_the_application_where_it_was(tmp_path: Path, step: str) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        devices = await reporting(house)
        before = await seen(house, devices)
        clean = space(other.system)

        source = house.system.component(MoveSource)

        async def fail(subject: str) -> None:
            if subject == step == "move.depart":
                for going in list(source._moves.values()):  # as if nothing had been heard of it for long
                    await source.back(going.application, going.token)
            elif subject == step:
                raise Overloaded("broken")

        peers_of(other).before = fail
        with pytest.raises(Overloaded):
            await move(house.system, first.hex(), "1")
        peers_of(other).before = None
        assert places_of(house, other) == [0, 0]
        assert await seen(house, devices) == before
        assert without(space(other.system), clean) == without(clean, clean)
        await house.report(devices[0], {"time": START_MS, "data": {"a": 7}})
        await move(house.system, first.hex(), "1")
        assert (await other.states(devices[0]))[-1]["data"] == {"a": 7}


async def test_an_application_is_taken_back_as_soon_as_the_other_process_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move_source, "PATIENCE_S", 3600.0)
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other), trio.open_nursery() as nursery:
        devices = await reporting(house)
        is_paused, is_back = trio.Event(), trio.Event()

        async def hang(subject: str) -> None:
            if subject == "move.depart":
                is_paused.set()
                await is_back.wait()

        async def move_in_vain() -> None:
            with pytest.raises(Overloaded, match="The other partition has taken the application back"):
                await move(house.system, first.hex(), "1")

        peers_of(other).before = hang
        nursery.start_soon(move_in_vain)
        await is_paused.wait()
        peers_of(house).ended.add(1)
        with trio.fail_after(PATIENCE_S):
            while house.system.component(MoveSource)._moves:
                await trio.lowlevel.checkpoint()
        await house.report(devices[0], {"time": START_MS, "data": {"a": 7}})
        is_back.set()


COMMITS_MAX = 30
"""A move of so little has fewer."""


async def test_killed_at_any_commit_an_application_is_in_one_partition(tmp_path: Path) -> None:
    """Both processes end at the same commit of a move, and start again."""
    for commits in range(1, COMMITS_MAX):
        if await is_moved_before(commits, tmp_path / str(commits)):
            return
    raise AssertionError("the move has not ended")


async def is_moved_before(commits: int, data_dir: Path) -> bool:
    """Kill two processes that move an application at a commit, start them again, and look at everything.

    Whether the move had fewer commits.
    """
    first = await divided(data_dir)
    async with partitions(data_dir, first) as (house, other):
        devices = await reporting(house)
        slug = PatchApplication(body=msgspec.convert({"endpointSlug": "first"}, ApplicationPatch))
        await house.system.ask(Ref("application", ROOT, first), slug)
        before = await seen(house, devices)
        left = commits
        with trio.CancelScope() as life:

            def ends(submit: Any) -> Any:
                def submitted(batch: Batch) -> Any:
                    nonlocal left
                    left -= 1
                    if left <= 0:
                        life.cancel()
                        batch = Batch()
                    return submit(batch)

                return submitted

            for each in (house, other):
                journal: Any = each.system.journal
                journal.submit = ends(journal.submit)
            await move(house.system, first.hex(), "1")
        is_complete = left > 0
        later_ms = house.clock.wall_ms() - START_MS + 60_000
    async with partitions(data_dir, first, offset_ms=later_ms) as (house, other):
        place = house.system.component(Places).find(first)
        assert place in ((1,) if is_complete else (0, 1))
        assert await seen(house, devices) == before
        assert await seen(other, devices) == before
        for each in (house, other):
            await swept(each)
            check(each.system)
        with house.system.store.snapshot(own=True) as one, other.system.store.snapshot(own=True) as two:
            held = [bool([*held_keys(each, first)]) for each in (one, two)]
            assert sorted(held) == [False, True], "all of it is in one partition"
            assert sum(records.total(each, APPLICATION, ROOT) for each in (one, two)) == 1
    return is_complete


async def test_an_application_that_has_departed_stays_whatever_fails_after_it(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        devices = await reporting(house)
        before = await seen(house, devices)

        async def full(subject: str) -> None:
            if subject == "move.depart":
                journal: Any = other.system.journal
                submit = journal.submit

                def submitted(batch: Batch) -> Any:
                    if keys.arrived_key(first) in batch.writes.get(keys.META, {}):
                        journal.submit = submit
                        raise StoreFull("no room is left")
                    return submit(batch)

                journal.submit = submitted

        peers_of(other).before = full
        await move(house.system, first.hex(), "1")
        assert places_of(house, other) == [1, 1]
        assert await seen(other, devices) == before
    later_ms = house.clock.wall_ms() - START_MS + 60_000
    async with partitions(tmp_path / "data", first, offset_ms=later_ms) as (house, other):
        assert places_of(house, other) == [1, 1]
        assert await seen(house, devices) == before
        with other.system.store.snapshot(own=True) as snapshot:
            assert snapshot.get(keys.META, keys.arrived_key(first)) is None


async def test_what_was_deleted_in_a_partition_is_removed_there_after_a_restart(tmp_path: Path) -> None:
    """Nothing says any more in which partition a deleted application was."""
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        await reporting(house)
        await move(house.system, first.hex(), "1")
        await other.system.ask(Ref("application", ROOT, first), DeleteApplication())
    async with partitions(tmp_path / "data", first) as (house, other):
        await swept(other)
        with other.system.store.snapshot(own=True) as snapshot:
            assert not [*held_keys(snapshot, first)]
            assert not [*markers(snapshot, keys.PURGE_PREFIX)]
