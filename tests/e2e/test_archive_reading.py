"""Archives are read back by the command line, and states into a device; damage is found. In both formats."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.e2e.conftest import Json, Server, running_server
from tests.e2e.device_calls import id_of
from tests.e2e.test_archives import DAY_MS, configure, days_ago, done, folder, remove
from trunkline.actors.core.values.csv_text import CsvLines
from trunkline.actors.portability.archives.reading import csv_records
from trunkline.http.cli.main import app

ATTRIBUTES = [
    {"name": "temp", "dataType": "number"},
    {"name": "time", "dataType": "number"},
    {"name": "label", "dataType": "string"},
    {"name": "on", "dataType": "boolean"},
    {"name": "place", "dataType": "gps"},
    {"name": "raw", "dataType": "blob"},
]


_LOGGED = "\x1b[2m"
"""What a line of the log begins with, and no other."""


async def archive_command(*arguments: str, status: int = 0) -> str:
    """What `trunkline archive` prints."""

    def run() -> Any:
        return CliRunner().invoke(app, ["archive", *arguments])

    result = await trio.to_thread.run_sync(run)
    assert (result.exit_code == 0) == (status == 0), (result.output, result.exception)
    # The runner takes what the whole process prints, and the server in it may log.
    lines = str(result.output).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_LOGGED))


def reports(start_ms: int) -> list[Json]:
    """States of two days, with values that are easily lost."""
    texts = ["", "a", "=1", "'quoted", 'a "b"', "a,b", "line\r\nfeed\n", "ä ☃", "null", "-5", "@x"]
    states: list[Json] = [
        {"data": {"label": text, "time": number}, "time": start_ms + number}
        for number, text in enumerate(texts)
    ]
    states += [
        {"data": {"temp": value}, "time": start_ms + 1000 + number}
        for number, value in enumerate([0, -1, 1.5, 1e300, 2**53, -0.1])
    ]
    states += [
        {"data": {"on": False}, "time": start_ms + DAY_MS, "meta": {"a": [None, "x"]}},
        {"data": {"on": True, "raw": "aGVsbG8="}, "time": start_ms + DAY_MS + 1, "meta": "-text"},
        {"data": {"place": "52.5,13.4"}, "time": start_ms + DAY_MS + 2, "flowVersion": "v1"},
    ]
    return states


@pytest.mark.parametrize("format", ["csv", "parquet"])
async def test_what_was_archived_and_removed_can_be_put_back(tmp_path: Path, format: str) -> None:
    """Archive, remove, restore: the history of the device is the same as before."""
    async with running_server(tmp_path / "data", archive_format=format) as server:
        application = await server.application()
        device = await server.device(application, attributes=ATTRIBUTES)
        (start_ms, _), (_, last) = days_ago(server, 40), days_ago(server, 39)
        await server.call("POST", f"{device}/state", reports(start_ms))
        history = f"{device}/state?limit=1000&sortDirection=asc"
        before = await server.call("GET", history)
        assert len(before) == len(reports(0))
        await configure(server, application)
        assert (await done(server, application, "backfillArchiveData"))["output"]["rows"] == len(before)
        await remove(server, device, start_ms + 2 * DAY_MS)
        assert await server.call("GET", history) == []
        root = str(folder(server, application))
        await archive_command("check", root)
        lines = (await archive_command("read", root, "--device", id_of(device), "--batch", "10")).splitlines()
        assert [len(json.loads(line)) for line in lines] == [10, len(before) - 10]
        for line in lines:
            await server.call("POST", f"{device}/state", json.loads(line))
        assert await server.call("GET", history) == before
        part = ["--start", last, "--end", f"{last}T00:00:00.001Z"]
        entries = (await archive_command("read", root, "--device", id_of(device), *part)).splitlines()
        assert [json.loads(entry)["time"] for entry in entries] == [start_ms + DAY_MS, start_ms + DAY_MS + 1]


async def test_states_of_the_first_years_of_the_epoch_can_be_put_back(server: Server) -> None:
    """As of devices whose clocks were never set: their times in milliseconds would be read as seconds."""
    application = await server.application()
    device, other = await server.device(application), await server.device(application)
    texts = (
        "1970-01-01",
        "1970-01-01T00:00:05Z",
        "1973-03-03T09:46:39.999Z",
        "1973-03-03T09:46:40Z",
        "2020-01-01",
    )
    states = [{"time": time, "data": {"temp": number}} for number, time in enumerate(texts)]
    await server.call("POST", f"{device}/state", states)
    await configure(server, application)
    await done(server, application, "backfillArchiveData")
    root = str(folder(server, application))
    (line,) = (await archive_command("read", root, "--device", id_of(device), "--batch", "10")).splitlines()
    await server.call("POST", f"{other}/state", json.loads(line))
    history = "state?limit=10"
    assert await server.call("GET", f"{other}/{history}") == await server.call("GET", f"{device}/{history}")


async def test_damage_of_an_archive_is_found(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    start_ms, _ = days_ago(server, 40)
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": start_ms})
    await server.call("POST", f"{device}/command", {"name": "go"})
    await configure(server, application)
    await done(server, application, "archiveData", date=start_ms)
    root = folder(server, application)
    assert "files: 1" in await archive_command("check", str(root))
    # The folder of the operator, with all applications.
    assert "files: 1" in await archive_command("check", str(root.parent))
    (path,) = root.rglob("*.states.csv")
    content = path.read_bytes()
    for damaged in (content.replace(b",1,", b",2,"), content + b"x", None):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        assert str(path.name) in (await archive_command("check", str(root), status=1)).replace("\n", "")
        await archive_command("read", str(root), "--device", id_of(device), status=1)
    (manifest,) = root.rglob("*.jsonl")
    line = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**line, "path": "../../secret"}) + "\n")
    assert "leads out" in (await archive_command("check", str(root), status=1)).replace("\n", "")
    await archive_command("check", str(root / "devices"), status=1)


@given(st.lists(st.lists(st.none() | st.text(), min_size=2, max_size=2)))
def test_csv_is_read_as_it_is_written(rows: list[list[str | None]]) -> None:
    lines = CsvLines()
    table: list[list[str | None]] = [["a", "b"], *rows]
    content = b"".join(map(lines.line, table))
    found = [
        [None if field is None else field.decode().removeprefix("'") for field in record]
        for record in csv_records(io.BytesIO(content), skip=1)
    ]
    assert found == rows


async def test_each_archive_runs_once_at_a_time(tmp_path: Path) -> None:
    """The folder cannot be written, so each archive waits for its next attempt."""
    (tmp_path / "file").write_text("")
    limits = {"job_pause_s": 3600}
    async with running_server(tmp_path / "data", archives=str(tmp_path / "file"), limits=limits) as server:
        application = await server.application()
        await configure(server, application, includeEvents=True)
        await server.call("POST", f"{application}/events", {"subject": "s", "level": "info"})
        server.move_clock(50 * DAY_MS / 1000)  # a backfill without a day to archive would end at once
        date = f"?date={days_ago(server, 40)[0]}"
        for call in (
            f"archiveData{date}",
            "backfillArchiveData",
            "fullDataTablesArchive",
            "fullEventsArchive",
        ):
            await server.call("GET", f"{application}/{call}", status=202)
            await server.call("GET", f"{application}/{call}", status=429)
