"""The bytes of applications in a store that is in use."""

from __future__ import annotations

from pathlib import Path

from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_sizes import sizes_in
from trunkline.store import codec, keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store

NAME = codec.encode({"name": "x"})
HOUSE, GARDEN, DEVICE, ADDED, MADE = (number.to_bytes(12, "big") for number in range(16, 21))


def write(data: Path, *entries: tuple[str, bytes, bytes]) -> None:
    batch = Batch()
    for entry in entries:
        batch.put(*entry)
    with Store.open(data) as store:
        store.journal.submit(batch)


async def test_each_entry_counts_for_the_application_to_which_it_belongs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(
        data,
        *((keys.RECORDS, keys.record_key("application", ROOT, id), NAME) for id in (HOUSE, GARDEN, MADE)),
        (keys.RECORDS, keys.record_key("device", HOUSE, DEVICE), NAME),
        (keys.RECORDS, keys.record_key("user", ROOT, b"u" * 12), bytes(100_000)),
        (keys.META, keys.building_key(MADE), NAME),
    )
    before = sizes_in(data, 0)
    assert before.applications.keys() == {HOUSE, GARDEN, MADE}
    assert before.fixed == {MADE}
    assert 0 < before.applications[GARDEN] < before.applications[HOUSE] < 1_000
    write(
        data,
        (keys.ROWS, DEVICE, bytes(7_000)),  # by what its key begins with
        (keys.EVENTS, GARDEN + bytes(8), bytes(5_000)),
        (keys.UNIQUE, bytes(32), HOUSE + bytes(50)),
    )
    after = sizes_in(data, 0)
    grown = {id: after.applications[id] - before.applications[id] for id in after.applications}
    assert 7_000 + 94 <= grown[HOUSE] <= 7_000 + 94 + 50
    assert 5_000 <= grown[GARDEN] <= 5_040
    assert grown[MADE] == 0
