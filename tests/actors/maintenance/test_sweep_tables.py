"""What a data table leaves out of sight is swept, and the check of a store sees what is wrong with rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.actors.house import House
from tests.actors.maintenance.test_sweep import (
    application,
    check,
    house_of,
    insert,
    opened,
    space,
    sweep_all,
    table,
)
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import NotFound
from trunkline.actors.data.tables import messages as tables
from trunkline.actors.data.tables import removed_columns
from trunkline.actors.data.tables.check import row_problems
from trunkline.actors.maintenance import sweep as purge
from trunkline.store import keys
from trunkline.store.backup import verify
from trunkline.store.batch import Batch
from trunkline.store.codec import decode

COLUMN = tables.Column(name="c", data_type="number", constraint="optional")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A system with an application."""
    async with opened(tmp_path / "data") as house:
        yield house_of(house, await application(house, filled=False))


@pytest.mark.parametrize("length", [1, 3, 500])
async def test_what_is_out_of_sight_of_a_table_is_swept_and_nothing_else(
    house: House, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "SLICE_KEYS", length)
    before = space(house.system)
    ref = await table(house)
    entries = space(house.system)
    assert len(entries[keys.ROWS]) == 5 + 1 + 5 + 5 + 1
    assert len(entries[keys.CELLS]) == 10 + 10 + 5
    await sweep_all(house.system, lambda: check(house.system))
    entries = space(house.system)
    assert len(entries[keys.ROWS]) == 5 + 5 + 1
    assert len(entries[keys.CELLS]) == 5 + 5
    assert not any(key.startswith(keys.SWEEP_PREFIX) for key in entries[keys.META])
    await house.system.ask(ref, tables.DeleteDataTable())
    with pytest.raises(NotFound):
        await insert(house, ref, "a")
    await sweep_all(house.system, lambda: check(house.system))
    after = space(house.system)
    before[keys.COUNTS] = after[keys.COUNTS]  # the application's history of payloads
    assert after == before


@pytest.mark.parametrize(("looked_at", "changed"), [(1, 1), (3, 2), (5000, 500)])
async def test_what_a_removed_column_left_is_taken_out_of_the_rows(
    house: House, looked_at: int, changed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removed_columns, "STEP_ROWS", looked_at)
    monkeypatch.setattr(removed_columns, "TIDIED_ROWS", changed)
    ref = await table(house)  # five rows hold values of a column that is gone, five do not
    steps = 0
    rows: list[dict[int, Any]] = []
    while await purge.sweep(house.system):
        check(house.system)
        stored = space(house.system)[keys.ROWS]
        rows = [decode(value) for key, value in stored.items() if key[16:17] == b"\x10"]
        steps += 1
        if steps == 4:  # somebody changes a row in between, and another column goes
            id = sorted(key[-12:] for key in stored if key[16:17] == b"\x10")[-1]
            await house.system.ask(ref, tables.PatchRow(row=id, body={"a": 99}))
            await house.system.ask(ref, tables.AddColumn(body=COLUMN))
            await house.system.ask(ref, tables.PatchRow(row=id, body={"c": 5}))
            await house.system.ask(ref, tables.RemoveColumn(query=tables.ColumnChoice(column_name="c")))
    if steps >= 4:
        assert {99} < {row[1] for row in rows}
    assert {frozenset(row) - {0} for row in rows} == {frozenset({1})}
    assert not any(key.startswith(keys.TIDY_PREFIX) for key in space(house.system)[keys.META])


async def test_the_check_sees_rows_that_nobody_will_sweep(house: House) -> None:
    await table(house)
    await sweep_all(house.system)
    broken = Batch()
    broken.put(keys.ROWS, keys.row_key(b"t" * 12, 1, b"r" * 12), b"\xa0")
    await house.system.journal.submit(broken).wait()
    problems = verify(house.system.store, partial(records.index_keys, KINDS), row_problems).problems
    assert problems == [
        f"rows {(b't' * 12).hex()}00000001: belongs to no data table, and has no marker for the sweeper"
    ]


@pytest.mark.parametrize("lost", [keys.ROWS, keys.CELLS, "head"])
async def test_the_check_sees_rows_and_index_that_disagree(house: House, lost: str) -> None:
    await table(house)
    await sweep_all(house.system)
    stored = space(house.system)
    rows = list(stored[keys.ROWS])
    broken = Batch()
    if lost == "head":
        broken.delete(keys.ROWS, rows[-1])
    else:
        broken.delete(lost, next(iter(stored[lost])))
    await house.system.journal.submit(broken).wait()
    assert verify(house.system.store, partial(records.index_keys, KINDS), row_problems).problems
