"""A data directory of format 1 opens as it is: lists get their indexes, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.actors.house import House, running_house
from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import CreateRecord, Creator, ListRecords
from trunkline.actors.core.records.summary import SummaryChoice
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.people.accounts.tokens import TokenPost
from trunkline.actors.platform.applications.keys import KeyPost
from trunkline.actors.platform.applications.messages import (
    ApplicationPage,
    ApplicationPost,
    CreateApplication,
    GetApplication,
    ListApplications,
)
from trunkline.store import checksums, codec, keys, migrations
from trunkline.store.batch import Batch
from trunkline.store.env import Store

OWNERS = (b"a" * 12, b"b" * 12)
KINDS = ("application", "applicationKey", "apiToken")


async def fill(house: House) -> None:
    """Applications of two owners; one has keys and tokens, of which one has no name."""
    for number in range(5):
        ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
        body = ApplicationPost(name=f"application {number}")
        await house.system.ask(ref, CreateApplication(body=body, user=OWNERS[number % 2]))
    by = Creator(OWNERS[0].hex(), "user", "owner")
    bodies: list[tuple[str, Any]] = [
        ("applicationKey", KeyPost(name="key")),
        ("applicationKey", KeyPost()),
        ("applicationApiToken", TokenPost(name="token", scope=["all.Application"])),
    ]
    for resource, body in bodies:
        message = CreateRecord(resource=resource, body=body, by=by)
        await house.system.ask(Ref("application", ROOT, house.application), message)


async def shown(house: House) -> dict[str, Any]:
    """What the lists show."""
    found: dict[str, Any] = {}
    for owner in (*OWNERS, bytes(12)):
        for sort in ("name", "creationDate", "lastUpdated"):
            query = msgspec.convert({"sortField": sort}, ApplicationPage)
            found[f"{owner.hex()} {sort}"] = await house.read(ListApplications(user=owner, query=query))
    for resource in ("applicationKey", "applicationApiToken"):
        page, ids = RESOURCES[resource].page(), {"application": house.application}
        found[resource] = await house.read(ListRecords(resource=resource, ids=ids, query=page))
    found["one"] = await house.read(GetApplication(application=house.application, query=SummaryChoice()))
    return found


def make_old(data: Path) -> None:
    """Take out of a store what the formats 2 and 3 added."""
    with Store.open(data) as store:
        handles = store.memory_map.handles
        with store.memory_map.env.begin(write=True) as transaction:
            for kind in KINDS:
                cursor = transaction.cursor(db=handles[keys.INDEXES])
                prefix = keys.kind_prefix(kind)
                while cursor.set_range(prefix) and cursor.key().startswith(prefix):
                    cursor.delete()
            total = keys.total_key("application", ROOT)
            for db, handle in handles.items():
                for key, value in list(transaction.cursor(db=handle)) if db != keys.ARRIVALS else ():
                    transaction.put(key, value[: -checksums.BYTES], db=handle)
            counts = codec.decode(transaction.get(total, db=handles[keys.COUNTS]) or b"")
            old = {name: number for name, number in counts.items() if not name.startswith("@")}
            assert old != counts
            transaction.put(total, codec.encode(old), db=handles[keys.COUNTS])
            transaction.put(migrations.FORMAT_KEY, codec.encode(1), db=handles[keys.META])


async def test_a_directory_of_format_1_opens_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_house(data) as house:
        await fill(house)
        before, application = await shown(house), house.application
    make_old(data)
    assert verify(data).problems[0].startswith("The store is in format 1")
    async with running_house(data) as house:
        house.application = application
        after = await shown(house)
    for page in (before, after):
        for name in [name for name in page if name.startswith(bytes(12).hex())]:
            del page[name]  # running the house again makes one more application of this owner
    assert after == before
    assert verify(data).problems == []
    assert (data / "backups" / "format-1").is_dir()


PASSWORD = "horse-of-a-webhook"


async def test_passwords_of_format_3_are_sealed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    kind = RESOURCES["webhook"].kind
    async with running_house(data) as house:
        key = keys.record_key(kind.name, house.application, b"w" * 12)
        plain = keys.record_key(kind.name, house.application, b"v" * 12)
        batch = Batch()
        for each, fields in ((key, {"basicAuthPassword": PASSWORD}), (plain, {})):
            doc: dict[str, Any] = {"name": "hook", "creationDate": 1, "lastUpdated": 1, **fields}
            batch.put(keys.RECORDS, each, codec.encode(doc))
            batch.add(keys.COUNTS, keys.total_key(kind.name, house.application), {"n": 1})
            for entry in records.entries(kind, house.application, each[-12:], doc):
                batch.put(keys.INDEXES, entry, b"")
        await house.system.journal.submit(batch).wait()
    make_format_3(data)
    with Store.open(data) as store, store.snapshot() as snapshot:
        doc = codec.decode(snapshot.get(keys.RECORDS, key) or b"")
        place: dict[str, Any] = {"kind": kind.name, "id": b"w" * 12, "field": "basicAuthPassword"}
        assert store.keyring.unseal(doc["basicAuthPassword"], **place) == PASSWORD
        assert "basicAuthPassword" not in codec.decode(snapshot.get(keys.RECORDS, plain) or b"")
    assert verify(data).problems == []
    assert PASSWORD.encode() in (data / "backups" / "format-3" / "store" / "data.mdb").read_bytes()


def make_format_3(data: Path) -> None:
    """Make a store as it was before there were encryption keys."""
    with Store.open(data) as store, store.memory_map.env.begin(write=True) as transaction:
        meta = store.memory_map.handles[keys.META]
        transaction.delete(migrations.KEY_KEY, db=meta)
        number = checksums.sealed(migrations.FORMAT_KEY, codec.encode(3))
        transaction.put(migrations.FORMAT_KEY, number, db=meta)
    (data / "encryption-keys").unlink()
