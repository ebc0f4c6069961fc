"""Contents: what a record names is there, and nothing else stays, wherever the work is interrupted."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.actors.core.contents.shelf import KINDS, Drop, Order, library
from tests.actors.house import START_MS, House
from tests.patience import PATIENCE_S
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.contents.messages import CompleteUpload
from trunkline.actors.core.contents.named import all_contents, content_problems, name_of
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Gone, NotFound, PayloadTooLarge, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.maintenance.sweep import SLICE_KEYS, sweep
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.applications.payload_counts import hourly_counts
from trunkline.limits.table import Limits
from trunkline.store import backup, keys
from trunkline.store.batch import Batch
from trunkline.store.blobs import Blobs
from trunkline.store.errors import StoreBroken
from trunkline.store.object_store import Stored
from trunkline.store.snapshot import Snapshot

HOUR_MS = 3_600_000


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    limits = Limits.off().override({"application_files_bytes_max": 1000, "files_bytes_max": 1300})
    async with library(tmp_path / "data", limits=limits) as house:
        yield house


async def ask(house: House, message: Message) -> None:
    await house.system.ask(Ref("shelf", house.application, house.application), message)


async def order(house: House, record: bytes | None = None) -> tuple[bytes, bytes]:
    """A book whose content is to come: the ids of both."""
    record = record or house.system.ids.new(START_MS)
    content = house.system.ids.new(START_MS)
    expires_ms = house.clock.wall_ms() + HOUR_MS
    await ask(house, Order(record=record, content=content, expires_ms=expires_ms))
    return record, content


async def upload(
    house: House, record: bytes, content: bytes, data: bytes, bytes_max: int = 1000, *, completes: bool = True
) -> None:
    """Write a content and complete its book, unless the server ends before that."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 100):
            yield data[start : start + 100]

    contents = house.system.component(Contents)
    stored = await contents.write(house.application, content, pieces(), bytes_max)
    assert stored == Stored(len(data), hashlib.sha256(data).hexdigest(), hashlib.md5(data).hexdigest())
    if completes:
        await ask(house, CompleteUpload(kind="book", record=record, content=content, stored=stored))


async def swept(house: House) -> None:
    """Sweep until nothing is left to do."""
    for _ in range(100):
        if not await sweep(house.system):
            return
    pytest.fail("the sweep does not end")


def files(path: Path) -> list[str]:
    """What is in the folder of the contents."""
    root = path / "data" / "contents"
    return sorted(
        str(each.relative_to(root)) for each in root.rglob("*") if each.is_file() and each.name != "lock"
    )


def markers(house: House) -> int:
    with house.system.store.snapshot() as snapshot:
        return snapshot.count(keys.META, keys.CONTENT_PREFIX, keys.prefix_end(keys.CONTENT_PREFIX))


def problems(house: House) -> list[str]:
    with house.system.store.snapshot() as snapshot:
        return list(content_problems(KINDS, snapshot, house.system.store.contents))


async def test_what_a_record_names_stays_and_nothing_else(house: House, tmp_path: Path) -> None:
    record, content = await order(house)
    name = name_of(house.application, content)
    await upload(house, record, content, b"a" * 400)
    house.clock.pass_s(7200)
    await swept(house)
    assert files(tmp_path) == [name]
    assert (markers(house), problems(house)) == (0, [])

    # A changed file has another content. The first one goes, the second one when its upload does not come.
    _, second = await order(house, record)
    assert files(tmp_path) == [name]
    await swept(house)
    assert (files(tmp_path), markers(house), problems(house)) == ([], 1, [])
    house.clock.pass_s(7200)
    await swept(house)
    assert markers(house) == 0
    with pytest.raises(Gone):
        await upload(house, record, second, b"late")
    # That file was written without a reservation, which the upload of a form never does.
    house.system.store.contents.remove(name_of(house.application, second))

    # A deleted one.
    _, third = await order(house, record)
    await upload(house, record, third, b"c" * 400)
    await ask(house, Drop(record=record))
    await swept(house)
    assert (files(tmp_path), markers(house), problems(house)) == ([], 0, [])


async def test_a_content_is_removed_while_much_of_somebody_else_is(house: House, tmp_path: Path) -> None:
    record, content = await order(house)
    await upload(house, record, content, b"a" * 400)
    await ask(house, Drop(record=record))
    rows, batch = b"r" * 28, Batch()
    for number in range(3 * SLICE_KEYS):
        batch.put(keys.ROWS, rows + number.to_bytes(4, "big"), b"")
    batch.put(keys.META, keys.SWEEP_PREFIX + rows, b"")
    await house.system.journal.submit(batch).wait()
    assert await sweep(house.system)
    with house.system.store.snapshot() as snapshot:
        assert snapshot.count(keys.ROWS, rows, keys.prefix_end(rows)) == 2 * SLICE_KEYS
    assert files(tmp_path) == []
    await swept(house)


async def test_a_reservation_does_not_expire_while_it_is_used(house: House, tmp_path: Path) -> None:
    record, content = await order(house)
    with house.system.component(Contents).in_use(house.application, content):
        house.clock.pass_s(7200)
        await swept(house)
        await upload(house, record, content, b"slow")
    await swept(house)
    assert files(tmp_path) == [name_of(house.application, content)]
    record, content = await order(house)
    with house.system.component(Contents).in_use(house.application, content):
        await ask(house, Drop(record=record))
        with pytest.raises(NotFound):
            await upload(house, record, content, b"dropped")
    await swept(house)
    assert (len(files(tmp_path)), markers(house)) == (1, 0)


async def test_a_repeated_upload_succeeds(house: House) -> None:
    record, content = await order(house)
    await upload(house, record, content, b"the same")
    await upload(house, record, content, b"the same")
    assert problems(house) == []


async def test_bytes_are_bounded_for_an_application_and_for_the_server(house: House, tmp_path: Path) -> None:
    first, second = await order(house), await order(house)
    await upload(house, *first, b"a" * 600)
    with pytest.raises(PayloadTooLarge, match="more than 500 bytes"):
        await upload(house, *second, b"b" * 501, bytes_max=500)
    with pytest.raises(StorageFull, match="would have more than 1000"):
        await upload(house, *second, b"b" * 401)
    house.system.component(Contents).check_room(house.application, 400)
    await upload(house, *second, b"b" * 400)
    third = await order(house)
    with pytest.raises(StorageFull, match="would have 1200 bytes, and 100 would stay free"):
        await upload(house, *third, b"c" * 400)
    await ask(house, Drop(record=first[0]))
    await upload(house, *third, b"c" * 600)
    fourth, fifth = await order(house), await order(house)
    with pytest.raises(StorageFull, match="would have more than 1000"):
        await upload(house, *fourth, b"d" * 100)
    assert name_of(house.application, fourth[1]) not in files(tmp_path)
    await upload(house, *fifth, b"", completes=False)
    assert name_of(house.application, fifth[1]) in files(tmp_path), "written, and completed by no record"
    house.clock.pass_s(7200)
    await swept(house)
    assert files(tmp_path) == sorted(name_of(house.application, content) for _, content in (second, third))
    assert (markers(house), problems(house)) == (0, [])
    assert not house.system.component(Contents).writing


async def test_a_deleted_application_takes_its_contents_along(house: House, tmp_path: Path) -> None:
    record, content = await order(house)
    await upload(house, record, content, b"content")
    await order(house)
    await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
    with Blobs(tmp_path / "data" / "contents").kept():
        await swept(house)  # not now: somebody copies them
        assert len(files(tmp_path)) == 1
        with house.system.store.snapshot() as snapshot:
            assert snapshot.get(keys.META, keys.purge_key(house.application)) is not None
    house.clock.pass_s(7200)
    await swept(house)
    assert (files(tmp_path), markers(house)) == ([], 0)
    with house.system.store.snapshot() as snapshot:
        assert snapshot.get(keys.META, keys.purge_key(house.application)) is None
        assert snapshot.get(keys.COUNTS, keys.content_count_key(house.application)) is None


async def test_what_is_missing_or_damaged_is_reported(house: House, tmp_path: Path) -> None:
    books = [await order(house) for _ in range(4)]
    for book in books:
        await upload(house, *book, b"content")
    names = [name_of(house.application, content) for _, content in books]
    folder = tmp_path / "data" / "contents"
    (folder / names[0]).unlink()
    (folder / names[1]).write_bytes(b"contend")
    (folder / names[2]).write_bytes(b"cont")
    found = problems(house)
    assert [each for each in found if names[3] in each] == []
    assert "missing" in next(each for each in found if names[0] in each)
    assert len(found) == 3
    with pytest.raises(StoreBroken):
        house.system.component(Contents).open(house.application, books[0][1], Stored(7, ""))


_BACK_UP = """
import sys
from pathlib import Path
from tests.actors.core.contents.shelf import KINDS
from trunkline.actors.core.contents.named import all_contents
from trunkline.store.backup import backup
backup(Path(sys.argv[1]), Path(sys.argv[2]), lambda part, _copy, _partition: all_contents(KINDS, part))
"""


async def test_a_backup_has_the_contents_that_its_records_name(house: House, tmp_path: Path) -> None:
    kept, dropped = await order(house), await order(house)
    await order(house)
    for book in (kept, dropped):
        await upload(house, *book, b"content")
    await ask(house, Drop(record=dropped[0]))

    async def back_up(target: Path) -> int:
        command = [sys.executable, "-c", _BACK_UP, str(tmp_path / "data"), str(target)]
        run = partial(subprocess.run, command, timeout=PATIENCE_S, check=False, capture_output=True)
        return (await trio.to_thread.run_sync(run)).returncode

    assert await back_up(tmp_path / "copy") == 0
    name = name_of(house.application, kept[1])
    copied = Blobs(tmp_path / "copy" / "contents")

    def check(snapshot: Snapshot) -> list[str]:
        assert [each for each, _ in all_contents(KINDS, snapshot)] == [name]
        return list(content_problems(KINDS, snapshot, copied))

    report = backup.verify(tmp_path / "copy", problems=check)
    assert report.problems == []
    copies = (tmp_path / "copy" / "contents").rglob("*")
    assert {path.name for path in copies if path.is_file()} == {"lock", name[25:]}

    (tmp_path / "data" / "contents" / name).write_bytes(b"damaged")
    assert await back_up(tmp_path / "damaged") == 1
    assert not (tmp_path / "damaged").exists()


async def test_the_bytes_of_contents_are_no_hour_of_payloads(house: House) -> None:
    """Their key lies among those of the last hours, in the year 196,000: counts per day would go through all days."""
    with house.system.store.snapshot() as snapshot:
        before = list(hourly_counts(snapshot, house.application, 0, keys.HOUR_MAX))
    record, content = await order(house)
    await upload(house, record, content, b"content")
    with house.system.store.snapshot() as snapshot:
        assert snapshot.get(keys.COUNTS, keys.content_count_key(house.application)) is not None
        assert list(hourly_counts(snapshot, house.application, 0, keys.HOUR_MAX)) == before
