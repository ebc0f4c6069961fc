"""While the process that was to take over an application is dead, its copy counts for no command that reads it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.data.files.forest import BY
from tests.actors.engine.run_house import add_credential
from tests.actors.house import House
from tests.actors.maintenance.partition_houses import divided, partitions
from tests.actors.maintenance.test_merged_stores import divide, seen
from tests.actors.maintenance.test_moves import peers_of, places_of, reporting, swept
from tests.actors.maintenance.test_sweep import application, check, device_ids
from tests.actors.maintenance.test_void_copies import copied_in_vain
from tests.forked_popen import Served
from tests.patience import PATIENCE_S
from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records.kept_answers import answer_problems
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.data.files import messages as files
from trunkline.actors.data.files.tree import tree_problems
from trunkline.actors.fleet.devices.record.messages import DeleteDevice
from trunkline.actors.maintenance import application_copy, data_directory, foreign
from trunkline.actors.maintenance.division import partitions_of
from trunkline.actors.maintenance.move_source import MoveSource
from trunkline.actors.maintenance.moves import move
from trunkline.limits.settings import Settings
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import BackupRefused
from trunkline.store.store_files import copy_partitions

_IN_ANOTHER_PROCESS = """
import sys
from pathlib import Path
from trunkline.actors.maintenance.data_directory import back_up
from trunkline.actors.maintenance.division import partitions_of
back_up(Path(sys.argv[1]), Path(sys.argv[2]))
print([[*each.applications] for each in partitions_of(Path(sys.argv[1]))])
"""
_STARTS = """
import sys
from trunkline.actors import boot
from trunkline.limits.settings import Settings
for number in (1, 0):
    with boot.opened(Settings(data_dir=sys.argv[1]), partition=number):
        pass
"""


@pytest.fixture(autouse=True)
def forked_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that reads is forked from one that has imported it."""
    monkeypatch.setattr(subprocess, "Popen", Served)


def run(program: str, *arguments: object) -> str:
    """Run a program in a process of its own; what it has printed."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        told, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    return told


async def upload(house: House) -> bytes:
    """Store a file with content; its id."""
    tree = Ref("fileTree", house.application, house.application)
    body = msgspec.convert({"name": "a.txt", "type": "file"}, files.FilePost)
    id: bytes = (await house.system.ask(tree, files.CreateFile(tree="file", body=body, by=BY))).value.id
    content = (await house.system.ask(tree, files.ReserveContent(tree="file", file=id))).value

    async def pieces() -> AsyncIterator[bytes]:
        yield b"content"

    stored = await house.system.component(Contents).write(house.application, content, pieces(), 100)
    await house.system.ask(tree, files.SetContent(tree="file", file=id, content=content, stored=stored))
    return id


async def problems(data: Path) -> list[str]:
    """What a check of both partitions finds, in another process."""
    reports = [
        await trio.to_thread.run_sync(partial(data_directory.check, data, partition=number))
        for number in (0, 1)
    ]
    return [problem for report in reports for problem in report.problems]


async def ended_at(house: House, other: House, ends: Callable[[Batch], bool]) -> None:
    """Move the application, and let both processes end where the other one would commit such a batch."""
    is_over = False
    with trio.fail_after(PATIENCE_S), trio.CancelScope() as life:

        def until(submit: Any) -> Any:
            def submitted(batch: Batch) -> Any:
                nonlocal is_over
                is_over = is_over or ends(batch)
                if is_over:
                    life.cancel()
                return submit(Batch() if is_over else batch)

            return submitted

        journals: list[Any] = [house.system.journal, other.system.journal]
        for journal in journals:
            journal.submit = until(journal.submit)
        await move(house.system, house.application.hex(), "1")
    assert is_over


def is_last(application: bytes, batch: Batch) -> bool:
    """Whether a batch is the last one of a move: it removes the note that the application has arrived."""
    return batch.to_plain() == [[keys.META, keys.arrived_key(application), None]]


async def given_away(data: Path) -> tuple[bytes, list[bytes], Any]:
    """A directory whose server has ended when an application was given away, and its new owner had not noted that yet.

    Return the application, its devices, and what is seen of them.
    """
    first = await divided(data)
    async with partitions(data, first) as (house, other):
        devices = await reporting(house)
        before = await seen(house, devices)
        await ended_at(house, other, partial(is_last, first))
    return first, devices, before


async def check_seen(data: Path, first: bytes, devices: list[bytes], before: Any, *, count: int = 2) -> None:
    """Start a server on a directory: all is there as it was, and stays."""
    for _ in range(2):
        async with partitions(data, first, offset_ms=120_000, count=count) as houses:
            assert None not in places_of(*houses)
            for each in houses:
                assert await seen(each, devices) == before
                await swept(each)
                check(each.system)


async def test_contents_that_only_a_void_copy_names_are_not_missing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = await divided(data)
    async with partitions(data, first) as (house, other):
        file = await upload(house)
        await copied_in_vain(first, house, other)
        tree = Ref("fileTree", first, first)
        await house.system.ask(tree, files.DeleteFile(tree="file", file=file))
        await swept(house)
        assert not [*(data / "contents" / first.hex()).glob("*")]
        assert await problems(data) == []
        told = await trio.to_thread.run_sync(run, _IN_ANOTHER_PROCESS, data, tmp_path / "copy")
        assert told == f"[['{first.hex()}'], []]\n"
    assert await problems(data) == []
    data_directory.back_up(data, tmp_path / "other")
    assert [[*each.applications] for each in partitions_of(data)] == [[first.hex()], []]
    for copy in (tmp_path / "copy", tmp_path / "other"):
        assert not [*copy.rglob("lock.mdb")]
        assert await problems(copy) == []
        async with partitions(copy, first, offset_ms=120_000) as houses:
            assert places_of(*houses) == [0, 0]


async def test_contents_of_an_application_that_was_given_away_are_checked_and_copied(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = await divided(data)
    async with partitions(data, first) as (house, other):
        await upload(house)
        await ended_at(house, other, partial(is_last, first))
    assert [[*each.applications] for each in partitions_of(data)] == [[], [first.hex()]]
    data_directory.back_up(data, tmp_path / "copy")
    (copied,) = (tmp_path / "copy" / "contents" / first.hex()).iterdir()
    assert await problems(tmp_path / "copy") == []
    copied.unlink()
    (missing,) = await problems(tmp_path / "copy")
    assert missing.endswith("the content is missing")


@pytest.mark.parametrize("commits", [10, 25])
async def test_half_a_copy_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int
) -> None:
    monkeypatch.setattr(application_copy, "BATCH_ENTRIES", 10)
    data, left = tmp_path / "data", commits
    first = await divided(data)

    def is_end(_batch: Batch) -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    async with partitions(data, first) as (house, other):
        house.application = (await application(house)).id
        await ended_at(house, other, is_end)
    assert await problems(data) == []
    data_directory.back_up(data, tmp_path / "copy")
    assert await problems(tmp_path / "copy") == []


async def test_no_commit_of_a_copy_that_comes_and_goes_looks_like_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application_copy, "BATCH_ENTRIES", 3)
    monkeypatch.setattr(foreign, "KEYS_AT_ONCE", 10)
    first = await divided(tmp_path / "data")
    async with partitions(tmp_path / "data", first) as (house, other):
        moved = await application(house)
        source, journal = house.system.component(MoveSource), other.system.journal
        submit: Any = journal.submit
        commits = 0

        def submitted(batch: Batch) -> Any:
            nonlocal commits
            commits += 1
            check(other.system)
            with other.system.store.snapshot(own=True) as snapshot:
                assert [*answer_problems(snapshot), *tree_problems(snapshot)] == []
            return submit(batch)

        async def change(subject: str) -> None:
            if subject == "move.pause":  # what was copied already goes
                for device in device_ids(house.system, moved):
                    await house.system.ask(Ref("device", moved.id, device), DeleteDevice())
            if subject == "move.depart":
                for going in list(source._moves.values()):  # as if nothing had been heard of it for long
                    await source.back(going.application, going.token)

        monkeypatch.setattr(journal, "submit", submitted)
        peers_of(other).before = change
        with pytest.raises(Overloaded, match="The other partition has taken the application back"):
            await move(house.system, moved.id.hex(), "1")
        assert commits > 60


async def test_secrets_of_a_void_copy_are_sealed_anew_like_all_others(tmp_path: Path) -> None:
    """Only the process that starts removes it, and until then the old key is gone."""
    data = tmp_path / "data"
    first = await divided(data)
    async with partitions(data, first) as (house, other):
        config = {
            "uriMatch": "http://127.0.0.1",
            "authMethod": "header",
            "publicValue": "k",
            "secretValue": "s",
        }
        await add_credential(house, "mine", type="http", httpConfig=config)
        await copied_in_vain(first, house, other)
    rotation = data_directory.rotate_encryption_key(Settings(data_dir=str(data)), discard=False)
    assert (rotation.resealed, rotation.discarded) == (2, 0)
    assert await problems(data) == []


@pytest.mark.parametrize("count", [1, 3])
async def test_a_division_keeps_an_application_that_was_given_away(tmp_path: Path, count: int) -> None:
    """Else the note that it is not in the old partition any more would be beside it in a new one."""
    data = tmp_path / "data"
    first, devices, before = await given_away(data)
    await divide(data, count)
    if count == 1:
        await divide(data, 2)
    await check_seen(data, first, devices, before, count=max(count, 2))


async def test_a_backup_is_refused_that_would_lack_an_application_that_was_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    first, devices, before = await given_away(data)

    def start_between(*arguments: Any) -> None:
        copy_partitions(*arguments)
        run(_STARTS, data)

    with monkeypatch.context() as patch:
        patch.setattr("trunkline.store.backup.copy_partitions", start_between)
        with pytest.raises(BackupRefused, match="Make the backup again"):
            data_directory.back_up(data, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    data_directory.back_up(data, tmp_path / "copy")
    await check_seen(tmp_path / "copy", first, devices, before)


async def test_a_backup_has_an_application_that_was_given_away(tmp_path: Path) -> None:
    first, devices, before = await given_away(tmp_path / "data")
    data_directory.back_up(tmp_path / "data", tmp_path / "copy")
    await check_seen(tmp_path / "copy", first, devices, before)
