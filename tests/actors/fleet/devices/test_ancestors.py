"""The ancestors of devices: in order, at most a thousand, and each is read once for a whole page."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.actors.house import House
from trunkline.actors.core.records import records
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.reads import ANCESTORS_SHOWN_MAX, Ancestors
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode


class CountedReads:
    """A snapshot that counts its reads."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        self.reads = 0

    def get(self, db: str, key: bytes) -> bytes | None:
        self.reads += 1
        found: bytes | None = self._snapshot.get(db, key)
        return found


async def chain(house: House, length: int) -> list[bytes]:
    """System devices, each below the one before it; put together from the lowest."""
    made = [await house.device(attributes={}, deviceClass="system") for _ in range(length)]
    for below in range(length - 1, 0, -1):
        body = msgspec.convert({"parentId": made[below - 1].hex()}, devices.DevicePatch)
        await house.ask(made[below], devices.PatchDevice(body=body))
    return made


async def test_a_page_reads_each_ancestor_once(house: House) -> None:
    made = await chain(house, 120)
    with house.system.store.snapshot() as snapshot:
        docs = [doc for _, doc in records.scan(snapshot, DEVICE, house.application)]
        counted: Any = CountedReads(snapshot)
        ancestors = Ancestors(counted, house.application)
        found = {doc["id"]: ancestors.of(doc) for doc in docs}
    assert counted.reads == 119
    for level, id in enumerate(made):
        assert found[id.hex()] == [above.hex() for above in reversed(made[:level])]


async def test_ancestors_end_with_a_circle_and_with_their_bound(house: House) -> None:
    ids = [number.to_bytes(12, "big") for number in range(1, ANCESTORS_SHOWN_MAX + 3)]
    batch = Batch()
    for number, id in enumerate(ids):
        parent = ids[number + 1] if number + 1 < len(ids) else ids[-2]
        doc = {"deviceClass": "system", "parentId": parent.hex()}
        batch.put(keys.RECORDS, keys.record_key(DEVICE.name, house.application, id), encode(doc))
    await house.system.journal.submit(batch).wait()
    with house.system.store.snapshot() as snapshot:
        ancestors = Ancestors(snapshot, house.application)
        longest = ancestors.of({"parentId": ids[1].hex()})
        circle = ancestors.of({"parentId": ids[-2].hex()})
    assert longest == [id.hex() for id in ids[1 : ANCESTORS_SHOWN_MAX + 1]]
    assert circle == [ids[-2].hex(), ids[-1].hex()]
