"""The schedule of archives: each day once, across restarts, before retention, and again if it fails."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Json, MovedClock, Server, running_server
from tests.e2e.device_calls import id_of
from tests.e2e.test_archives import configure, days_ago, done, folder, manifest, table
from tests.e2e.test_exports import ended
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.platform.applications.archive_days import oldest_unarchived_ms
from trunkline.actors.portability.archives.schedule import queue_due
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.flusher import Flusher
from trunkline.store.sorted_runs import runs_of


async def test_what_cannot_be_read_is_reported_and_tried_again(server: Server) -> None:
    """And does not keep the rest from being archived."""
    application = await server.application()
    devices = [await server.device(application, name) for name in ("a", "b", "c")]
    start_ms, day = days_ago(server, 32)
    for device in devices:
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": start_ms})
    await configure(server, application)
    await server.system.component(Flusher).flush_all()
    with server.system.store.snapshot() as snapshot:
        (run,) = runs_of(snapshot)
        point = keys.block_key(run.number, bytes.fromhex(id_of(devices[1])), start_ms)
        good = snapshot.get(keys.RUNS, point)
    assert good is not None
    await write(server, point, b"\xff")
    await queue_due(server.system)
    (log,) = (await server.call("GET", f"{application}/jobLogs"))["items"]
    log = await ended(server, application, log["id"])
    assert log["status"] == "errored"
    assert f"device {id_of(devices[1])} on {day}" in log["error"]["message"]
    assert "(files: 2)" in log["error"]["message"]
    path = folder(server, application) / f"manifests/days/{day[:4]}/{day}.jsonl"
    assert len(manifest(path)) == 2
    await write(server, point, good)
    await queue_due(server.system)
    for log in (await server.call("GET", f"{application}/jobLogs"))["items"]:
        await ended(server, application, log["id"])
    assert len(manifest(path)) == 3


async def write(server: Server, key: bytes, value: bytes) -> None:
    """Write a block of a device."""
    batch = Batch()
    batch.put(keys.RUNS, key, value)
    await server.system.journal.submit(batch).wait()


async def scheduled(server: Server, application: str) -> list[Json]:
    """The inputs of the jobs that the schedule has queued, after one look; all of them have completed."""
    await queue_due(server.system)
    return await queued(server, application)


async def queued(server: Server, application: str) -> list[Json]:
    """The same without a look."""
    found = []
    for log in (await server.call("GET", f"{application}/jobLogs?sortDirection=asc"))["items"]:
        if log["requestedByType"] == "system":
            ended_log = await ended(server, application, log["id"])
            assert (ended_log["status"], ended_log["output"].get("told")) == ("completed", None)
            found.append(log["input"])
    return found


async def test_the_schedule_archives_each_day_once(tmp_path: Path) -> None:
    """Also across restarts, and days that passed while the server was down."""
    async with running_server(tmp_path / "data") as server:
        application = await server.application()
        device = await server.device(application)
        await configure(server, application, delayDays=35, includeDataTables=True)
        (_, first), (_, next_day) = days_ago(server, 36), days_ago(server, 35)
        spans = [{"first": first, "last": first, "again": False}, {}]
        assert await scheduled(server, application) == spans
        assert await scheduled(server, application) == spans
        server.move_clock(86_400)
        server.token = await server.log_in()
        spans += [{"first": next_day, "last": next_day, "again": False}, {}]
        assert await scheduled(server, application) == spans
        late_ms, late = days_ago(server, 10)
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": late_ms})
    async with running_server(tmp_path / "data", clock=MovedClock(41 * 86_400)) as server:
        (_, first), (_, last) = days_ago(server, 75), days_ago(server, 36)
        assert first > next_day, "the server had not run"
        inputs: list[Json] = []
        with trio.fail_after(PATIENCE_S):  # the server looks when it starts
            while len(inputs) < len(spans) + 2:
                inputs = await queued(server, application)
        assert await scheduled(server, application) == inputs
        (span, _) = inputs[len(spans) :]
        assert (span["first"], span["last"]) == (first, last)
        assert [path.name for path in folder(server, application).rglob("*.states.csv")] == [
            f"{late}.states.csv"
        ]
        with server.system.store.snapshot() as snapshot:
            kept_ms = oldest_unarchived_ms(snapshot, bytes.fromhex(id_of(application)), "devices")
        assert kept_ms == days_ago(server, 35)[0]


async def test_nothing_is_removed_because_of_its_age_before_it_is_archived(start_server: Any) -> None:
    """And what was removed since is not taken from the archive by writing the day again."""
    async with start_server(limits={"state_keep_days": 32}) as server:
        application = await server.application()
        device = await server.device(application)
        await configure(server, application)
        (start_ms, day), retention = days_ago(server, 0), server.system.component(Retention)
        states = [{"data": {"temp": number}, "time": start_ms + number} for number in range(3)]
        for part in (states[:2], states[2:]):
            await server.call("POST", f"{device}/state", part)
            await server.system.component(Flusher).flush_all()
        server.move_clock(40 * 86_400)
        server.token = await server.log_in()
        await retention.remove_expired()
        assert retention.removed["state"] == 0
        await scheduled(server, application)
        (file,) = folder(server, application).rglob(f"{day}.states.csv")
        assert [line["temp"] for line in table(file)] == ["0", "1", "2"]
        server.move_clock(86_400)
        server.token = await server.log_in()
        await retention.remove_expired()
        assert retention.removed["state"] == 2, "the block of the newest state stays"
        await configure(server, application, includeEvents=True)
        await done(server, application, "backfillArchiveData")
        assert len(table(file)) == 3
        refused = await server.call("GET", f"{application}/archiveData?date={start_ms}", status=400)
        assert refused["message"].startswith("date: must be newer than 32 days")


async def test_an_export_of_the_application_is_archived(server: Server) -> None:
    application = await server.application("house of bricks")
    options = {"includeDevices": True}
    await configure(server, application, includeApplicationExport=True, applicationExportOptions=options)
    await server.device(application)
    await scheduled(server, application)
    _, today = days_ago(server, 0)
    root = folder(server, application)
    (line,) = manifest(root / f"manifests/exports/{today}.jsonl").values()
    assert (line["path"], line["what"]) == (f"exports/{today}.zip", "application")
    with zipfile.ZipFile(root / line["path"]) as bundle:
        assert json.loads(bundle.read("manifest.json"))["application"]["name"] == "house of bricks"
        assert b"pump" in bundle.read("resources/Device.jsonl")
