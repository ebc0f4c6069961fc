"""`check` survives the store that it checks, and tells what it saw."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import trio

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import button, create_flow, press, waiting_triggers
from tests.actors.house import running_house
from tests.forked_popen import Served
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance import data_directory
from trunkline.actors.maintenance.verify import verify
from trunkline.store import codec, keys, pages
from trunkline.store.batch import Batch
from trunkline.store.directory import data_file
from trunkline.store.env import Store
from trunkline.store.errors import BackupRefused, StoreDamaged

PAGE = 4096


@pytest.fixture(autouse=True)
def forked_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads is forked from one that has imported it."""
    monkeypatch.setattr(subprocess, "Popen", Served)


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory with an application, and with events that need several pages."""
    async with running_house(tmp_path / "data"):
        pass
    with Store.open(tmp_path / "data") as store:
        batch = Batch()
        for number in range(500):
            batch.put(keys.EVENTS, b"event %06d" % number, codec.encode("x" * 100))
        store.journal.submit(batch)
    return tmp_path / "data"


def zero(data: Path, number: int) -> None:
    """Zero a page."""
    with data_file(data).open("r+b") as file:
        file.seek(number * PAGE)
        file.write(bytes(PAGE))


def root(data: Path, name: str) -> int:
    """The root page of a tree."""
    with pages._reading(data_file(data)) as descriptor:
        meta, _ = pages._newest_meta(descriptor)
        walk = pages._Walk(descriptor, meta, None, leaves=True)
        walk.run()
    return {**dict(walk._named), "": meta.main}[name].root


async def test_a_sound_directory_has_no_problem(data: Path) -> None:
    told, here = data_directory.check(data), verify(data)
    assert (told.problems, told.counts, told.format) == ([], here.counts, here.format)
    assert told.counts[keys.EVENTS] == 500


async def test_a_directory_in_use_is_checked(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data"):
        assert data_directory.check(tmp_path / "data").problems == []


async def test_triggers_that_wait_are_checked_in_their_own_forms(tmp_path: Path) -> None:
    """Workflows wait in the store as MessagePack, as CBOR (for large integers), and with markers of what they did."""
    path = tmp_path / "data"
    async with running_house(path) as house:
        stored = {"keyName": "k", "valueType": "json", "value": "[1]"}
        nodes = [node("s", "StoreValueNode", stored, ["d"]), node("d", "DelayNode", {"delay": 59})]
        flow = await create_flow(house, [button(["s"])], nodes)
        for payload in ({"n": 1}, {"n": 2**70}):
            await press(house, flow, payload)
        with trio.fail_after(PATIENCE_S):
            while len(waiting_triggers(house)) < 3:  # two triggers and the marker of the first run
                await trio.lowlevel.checkpoint()
        assert data_directory.check(path).problems == []
    # After a stop they wait for the next start.
    with Store.open(path) as store:
        with store.snapshot() as snapshot:
            waiting = {bytes(key): len(key) for key in snapshot.keys(keys.TRIGGERS, b"", None)}
        assert sorted(waiting.values()).count(keys.TRIGGER_KEY_BYTES) == 2
        assert data_directory.check(path).problems == []
        batch = Batch()
        for key in waiting:
            batch.put(keys.TRIGGERS, key, b"\xc1")  # a byte that neither form has
        store.journal.submit(batch)
    problems = data_directory.check(path).problems
    assert sorted(each.split(" ")[1].rstrip(":") for each in problems) == sorted(key.hex() for key in waiting)


async def test_a_page_that_ends_the_process_is_told(data: Path) -> None:
    """What was read before stays known, and the last sentence says where and how it ended."""
    zero(data, data_file(data).read_bytes().rfind(b"event 000250") // PAGE)
    report = data_directory.check(data)
    assert report.problems[0].startswith(f"{data_file(data)} is damaged: events: page ")
    assert f"The check of {data} died of SIG" in report.problems[-1]
    assert "in the reading of the database events" in report.problems[-1]
    assert set(report.counts) == set(keys.DATABASES[: keys.DATABASES.index(keys.EVENTS)])
    assert report.counts[keys.RECORDS] > 0
    with pytest.raises(StoreDamaged):
        Store.open(data)


async def test_what_can_be_read_is_read(data: Path) -> None:
    """Here LMDB reports an error and does not die; the other databases are read all the same."""
    zero(data, root(data, keys.RECORDS))
    report = data_directory.check(data)
    assert report.problems[0].startswith(f"{data_file(data)} is damaged: records: page ")
    assert any(problem.startswith("records: after 0 entries: ") for problem in report.problems)
    assert set(report.counts) == set(keys.DATABASES) - {keys.RECORDS, keys.INDEXES}, "indexes need records"
    assert report.counts[keys.EVENTS] == 500


async def test_a_store_that_cannot_even_be_opened_is_told(data: Path) -> None:
    zero(data, root(data, ""))
    problems = data_directory.check(data).problems
    assert problems[0].startswith(f"{data_file(data)} is damaged: databases: page ")
    with pytest.raises(StoreDamaged):
        Store.open(data)


@pytest.mark.parametrize("size", [1, 4000, 5000, 9000, 40_000])
async def test_a_cut_file_is_told(data: Path, size: int) -> None:
    with data_file(data).open("r+b") as file:
        file.truncate(size)
    report = data_directory.check(data)
    assert report.problems[0].startswith(f"{data_file(data)} is damaged: ")


@pytest.mark.parametrize("content", [None, b""])
def test_where_there_is_no_store_there_is_nothing_to_check(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "store").mkdir()
        data_file(tmp_path).write_bytes(content)
    with pytest.raises(BackupRefused, match="holds no store"):
        data_directory.check(tmp_path)
