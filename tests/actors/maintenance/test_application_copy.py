"""The copy of an application in another store: the same after a pass in which nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tests.actors.house import House
from tests.actors.maintenance.partition_houses import divided, partitions
from tests.actors.maintenance.test_merged_stores import live
from tests.actors.maintenance.test_sweep import application, opened, space
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_copy import ApplicationCopy, paired_runs
from trunkline.actors.maintenance.application_keys import held_keys, spans
from trunkline.actors.maintenance.foreign import remove_copy
from trunkline.actors.maintenance.key_owners import KeyOwners
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode
from trunkline.store.flusher import Flusher
from trunkline.store.snapshot import Snapshot
from trunkline.store.sorted_runs import SortedRun, runs_of


async def made_same(house: House, other: House, copy: ApplicationCopy) -> int:
    """Make a pass of a copy; how many batches had something."""
    batches = [batch for batch in copy.batches() if batch]
    for batch in batches:
        await other.system.journal.submit(batch).wait()
    return len(batches)


async def copy_of(house: House, other: House) -> ApplicationCopy:
    def store_of(each: House) -> Callable[[], Snapshot]:
        return partial(each.system.store.snapshot, own=True)

    copy = ApplicationCopy(house.application, store_of(house), store_of(other))
    with house.system.store.snapshot(own=True) as snapshot:
        source = runs_of(snapshot)

    def pair(runs: Sequence[SortedRun]) -> Sequence[SortedRun]:
        copy.runs, after = paired_runs(source, runs, {})
        return after

    await other.system.component(Flusher).change_runs(pair)
    return copy


async def test_a_second_pass_finds_nothing(tmp_path: Path) -> None:
    application = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", application) as (house, other):
        await live(house, 3)
        await house.flush()
        copy = await copy_of(house, other)
        assert await made_same(house, other, copy) > 0
        assert await made_same(house, other, copy) == 0
        for span in spans(application):
            with (
                house.system.store.snapshot(own=True) as there,
                other.system.store.snapshot(own=True) as here,
            ):
                assert [*there.range(*span.range)] == [*here.range(*span.range)], span


async def test_all_that_an_application_has_is_among_its_keys(tmp_path: Path) -> None:
    """What divides stores finds the application of each key by another way."""
    async with opened(tmp_path / "data") as house:
        ref, other = await application(house), await application(house)
        await house.flush()
        owners = KeyOwners()
        with house.system.store.snapshot() as snapshot:
            owners.learn(0, snapshot)
            for each in (ref, other):
                held = set(held_keys(snapshot, each.id))
                record = keys.record_key(APPLICATION.name, ROOT, each.id)
                indexes = keys.record_prefix(APPLICATION.name, ROOT)
                for db in keys.DATABASES:
                    found = {
                        (db, bytes(key))
                        for key, value in snapshot.range(db, b"", None)
                        if owners.of(db, bytes(key), bytes(value)) == each.id
                        and not (db == keys.RECORDS and key == record)
                        and not (db == keys.INDEXES and key.startswith(indexes))
                    }
                    assert found == {key for key in held if key[0] == db}, db


async def test_a_copy_has_everything_and_what_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        ref = await application(house)
        await house.flush()
        clean = space(other.system)
        house.application = ref.id
        copy = await copy_of(house, other)
        await made_same(house, other, copy)
        assert await made_same(house, other, copy) == 0
        with (
            house.system.store.snapshot(own=True) as there,
            other.system.store.snapshot(own=True) as here,
        ):
            missing = set(held_keys(there, ref.id)) - set(held_keys(here, ref.id))
            assert missing, "they come with the switch"
            assert {db for db, _ in missing} <= {keys.UNIQUE, keys.TRIGGERS, keys.META, keys.RUNS}
        await remove_copy(other.system.store, ref.id)
        assert space(other.system) != clean, "only what is marked as foreign"
        marker = Batch()
        marker.put(keys.META, keys.foreign_key(ref.id), encode({"partition": 0}))
        await other.system.journal.submit(marker).wait()
        await remove_copy(other.system.store, ref.id)
        assert space(other.system) == clean


def test_runs_are_paired_by_their_age() -> None:
    def runs(*numbers: int) -> list[SortedRun]:
        return [SortedRun(number, 10, number * 100, number * 100 + 50) for number in numbers]

    pairs, after = paired_runs(runs(3, 5, 9), runs(1, 7), {})
    assert pairs == {3: 1, 5: 7, 9: 8}
    assert [run.number for run in after] == [1, 7, 8]
    assert after[0][2:] == (100, 350)
    assert after[2][1:] == (0, 900, 950), "its rows are counted by who writes them"
    pairs, after = paired_runs(runs(3, 5, 9, 10), [*after, *runs(9)], pairs)
    assert pairs[10] == 10, "newer than all that were there"
    assert [run.number for run in after] == [1, 7, 8, 9, 10]
