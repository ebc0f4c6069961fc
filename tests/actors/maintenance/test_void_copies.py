"""A copy that an application was not given away to is void, whatever becomes of the application where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.house import START_MS, House
from tests.actors.maintenance.partition_houses import divided, partitions
from tests.actors.maintenance.test_merged_stores import seen
from tests.actors.maintenance.test_moves import listed_and_counted, peers_of, places_of, reporting, swept
from tests.actors.maintenance.test_sweep import check
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owner import unique_key
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_keys import held_keys
from trunkline.actors.maintenance.foreign import settle
from trunkline.actors.maintenance.move_source import MoveSource
from trunkline.actors.maintenance.moves import move
from trunkline.actors.platform.applications.messages import (
    ApplicationPatch,
    DeleteApplication,
    PatchApplication,
)
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreFull

SLUG_KEY = unique_key(APPLICATION, "endpointSlug", "first")


async def copied_in_vain(first: bytes, source: House, target: House) -> None:
    """A process dies when the application has arrived there, and the other one takes it back."""
    slug = PatchApplication(body=msgspec.convert({"endpointSlug": "first"}, ApplicationPatch))
    await source.system.ask(Ref("application", ROOT, first), slug)
    with trio.fail_after(PATIENCE_S), trio.CancelScope() as life:

        async def die(subject: str) -> None:
            if subject == "move.depart":
                life.cancel()
                await trio.lowlevel.checkpoint()

        peers_of(target).before = die
        await move(target.system, first.hex(), "1")
    peers_of(target).before = None
    peers_of(source).ended.add(1)
    with trio.fail_after(PATIENCE_S):
        while source.system.component(MoveSource)._moves:
            await trio.lowlevel.checkpoint()
    with target.system.store.snapshot(own=True) as snapshot:
        assert snapshot.get(keys.META, keys.arrived_key(first)) is not None
        assert snapshot.get(keys.UNIQUE, SLUG_KEY) == first


async def test_an_application_that_was_taken_back_and_deleted_does_not_come_back(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data", 3)
    async with partitions(tmp_path / "data", first, count=3) as (house, other, third):
        await reporting(house)
        await copied_in_vain(first, house, other)
        await house.system.ask(Ref("application", ROOT, first), DeleteApplication())
        await swept(house)
        for looking in (house, third):
            assert looking.system.store.look(listed_and_counted, wide=True) == ([], 0)
            assert looking.system.component(Places).find(first) is None
            assert looking.system.journal.get(keys.UNIQUE, SLUG_KEY) is None, "its name is free"
    async with partitions(tmp_path / "data", first, count=3) as houses:
        assert places_of(*houses) == [None] * 3
        for each in houses:
            assert each.system.store.look(listed_and_counted, wide=True) == ([], 0)
            await swept(each)
            check(each.system)
            with each.system.store.snapshot(own=True) as snapshot:
                assert not [*held_keys(snapshot, first)]


def starting_when_given(first: bytes, dead: House, target: House) -> list[bool]:
    """Let the start of a process that has died decide what it has, as soon as the application is given to `target`.

    Return for each note of an arrival there, and for its end, whether that was done.
    """
    journal: Any = target.system.journal
    submit = journal.submit
    done: list[bool] = []

    def submitted(batch: Batch) -> Any:
        if keys.arrived_key(first) in batch.writes.get(keys.META, {}):
            is_given = bool(done)
            if is_given:  # the partition where it was still says so
                store = dead.system.store
                assert store.partitions is not None
                settle(store, store.partitions, store.own_results)
            done.append(is_given)
        return submit(batch)

    journal.submit = submitted
    return done


async def test_an_application_that_was_taken_back_and_moved_elsewhere_is_there_only(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data", 3)
    async with partitions(tmp_path / "data", first, count=3) as (house, other, third):
        devices = await reporting(house)
        await copied_in_vain(first, house, other)
        started = starting_when_given(first, other, third)
        await move(third.system, first.hex(), "2")
        assert started == [False, True]
        await third.report(devices[0], {"time": START_MS, "data": {"a": 7}})
        before = await seen(third, devices)
        for looking in (house, other, third):
            assert looking.system.store.look(listed_and_counted, wide=True) == ([first], 1)
            assert looking.system.component(Places).find(first) == 2
        later_ms = house.clock.wall_ms() - START_MS + 60_000
    async with partitions(tmp_path / "data", first, offset_ms=later_ms, count=3) as houses:
        assert places_of(*houses) == [2] * 3
        for number, each in enumerate(houses):
            assert await seen(each, devices) == before
            await swept(each)
            check(each.system)
            with each.system.store.snapshot(own=True) as snapshot:
                assert bool([*held_keys(snapshot, first)]) == (number == 2)
                assert records.total(snapshot, APPLICATION, ROOT) == (number == 2)


async def test_a_copy_is_given_up_although_the_store_is_full_just_then(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        await reporting(house)
        source = house.system.component(MoveSource)
        journal: Any = other.system.journal
        submit, refused = journal.submit, 0

        def submitted(batch: Batch) -> Any:
            nonlocal refused
            if keys.foreign_key(first) in batch.writes.get(keys.META, {}) and refused < 2:
                refused += 1
                raise StoreFull("no room is left")
            return submit(batch)

        async def take_back(subject: str) -> None:
            if subject == "move.depart":
                for going in list(source._moves.values()):  # as if nothing had been heard of it for long
                    await source.back(going.application, going.token)
                journal.submit = submitted

        peers_of(other).before = take_back
        with pytest.raises(Overloaded, match="The other partition has taken the application back"):
            await move(house.system, first.hex(), "1")
        assert refused == 2
        with other.system.store.snapshot(own=True) as snapshot:
            assert not [*held_keys(snapshot, first)]
            assert records.total(snapshot, APPLICATION, ROOT) == 0
        peers_of(other).before = None
        await move(house.system, first.hex(), "1")
        assert house.system.store.look(listed_and_counted, wide=True) == ([first], 1)
