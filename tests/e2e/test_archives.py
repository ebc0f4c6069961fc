"""Archives: what is written, that it is complete, when it is written, and that it can be read back."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Json, Server
from tests.e2e.device_calls import id_of
from tests.e2e.rows import api_token
from tests.e2e.test_exports import ended
from trunkline.actors.platform.applications.archive_days import day_text

DAY_MS = 86_400_000
OTHER_CALLS = ("backfillArchiveData", "fullDataTablesArchive", "fullEventsArchive")
"""The operations that write an archive, but for that of a single day."""


def days_ago(server: Server, days: int) -> tuple[int, str]:
    """The first millisecond of a day (UTC), and its text."""
    day = server.system.clock.wall_ms() // DAY_MS - days
    return day * DAY_MS, day_text(day)


def folder(server: Server, application: str) -> Path:
    """Where the archive of an application lies, without a directory."""
    return Path(server.settings.data_dir) / "archives" / id_of(application)


def manifest(path: Path) -> dict[str, Json]:
    """The lines of a manifest, by path; each file must be as its line says."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["path"] for line in lines] == sorted(line["path"] for line in lines)
    root = next(parent for parent in path.parents if parent.name == "manifests").parent
    for line in lines:
        content = (root / line["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (line["bytes"], line["sha256"])
    assert len({line["path"] for line in lines}) == len(lines)
    return {line["path"]: line for line in lines}


def table(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file."""
    return list(csv.DictReader(io.StringIO(path.read_text(), newline=""), strict=True))


def holds(path: Path, text: bytes) -> bool:
    """Whether a file in a folder contains a text."""
    return any(each.is_file() and text in each.read_bytes() for each in path.rglob("*"))


async def done(server: Server, application: str, operation: str, **query: Any) -> dict[str, Any]:
    """The log of an archive that has completed."""
    queued = await server.call("GET", f"{application}/{operation}", status=202, params=query)
    log = await ended(server, application, queued["jobId"])
    assert log["status"] == "completed", log
    return log


async def remove(server: Server, device: str, end_ms: int) -> None:
    """Remove what a device reported until a time."""
    queued = await server.call("DELETE", f"{device}/data?start=1&end={end_ms}", status=202)
    log = await ended(server, device.partition("/devices")[0], queued["jobId"])
    assert log["status"] == "completed", log


async def configure(server: Server, application: str, **config: Any) -> None:
    await server.call("PATCH", application, {"archiveConfig": config})


async def test_a_day_of_a_device_is_archived_completely(server: Server) -> None:
    """States with what belongs to them, commands and changes of the connection; and nothing of other days."""
    application = await server.application()
    device = await server.device(application)
    start_ms, day = days_ago(server, 40)
    states = [
        {"data": {"temp": 2**60, "label": '=1, "x"', "on": True}, "time": start_ms, "meta": {"a": [1]}},
        {"data": {"label": ""}, "time": start_ms + DAY_MS - 1, "flowVersion": "v1"},
        {"data": {"temp": 7}, "time": start_ms - 1},
        {"data": {"temp": 8}, "time": start_ms + DAY_MS},
    ]
    await server.call("POST", f"{device}/state", states)
    await configure(server, application, directory="a/b c")
    log = await done(server, application, "archiveData", date=start_ms + 5)
    root, id = folder(server, application) / "a" / "b c", id_of(device)
    name = f"devices/{id}/{day[:4]}/{day[5:7]}/{day}.states.csv"
    (line,) = manifest(root / f"manifests/days/{day[:4]}/{day}.jsonl").values()
    assert (line["path"], line["what"], line["day"], line["rows"]) == (name, "states", day, 2)
    assert (line["deviceId"], line["name"]) == (id, "pump")
    assert line["columns"][3:] == [
        {"name": "temp", "dataType": "number"},
        {"name": "label", "dataType": "string"},
        {"name": "on", "dataType": "boolean"},
        {"name": "$meta", "dataType": "json"},
        {"name": "$flowVersion", "dataType": "string"},
    ]
    content = (root / name).read_bytes()
    assert [log["output"][name] for name in ("files", "rows", "bytes")] == [1, 2, len(content)]
    assert content.decode() == (
        "deviceId,time,date,temp,label,on,$meta,$flowVersion\r\n"
        f'{id},{start_ms},{day}T00:00:00.000Z,{2**60},"\'=1, ""x""",true,"{{""a"":[1]}}",\r\n'
        f'{id},{start_ms + DAY_MS - 1},{day}T23:59:59.999Z,,"",,,v1\r\n'
    )
    assert not any((root.parent.parent.parent / ".drafts").iterdir())


async def test_commands_connections_and_deleted_devices_are_archived(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    await server.call("POST", f"{device}/command", {"name": "go", "payload": [1]})
    await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
    await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
    _, day = days_ago(server, 0)
    await server.call("DELETE", device)
    await configure(server, application)
    server.move_clock(33 * 86_400)
    server.token = await server.log_in()
    root = folder(server, application)
    for _ in range(2):
        await done(server, application, "archiveData", date=day)
        found = manifest(root / f"manifests/days/{day[:4]}/{day}.jsonl")
        assert [line["what"] for line in found.values()] == ["commands", "connections", "states"]
    commands, connections, _ = (root / path for path in found)
    assert [(line["name"], line["payload"]) for line in table(commands)] == [("go", "[1]")]
    assert [line["connected"] for line in table(connections)] == ["true"]


async def test_backfill_archives_each_earlier_day_once(server: Server) -> None:
    application = await server.application()
    device, other = await server.device(application), await server.device(application, "other")
    times = [days_ago(server, days)[0] for days in (400, 400, 50, 33, 31, 3)]
    for time_ms in times:
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": time_ms})
    await server.call("POST", f"{other}/state", {"data": {"temp": 1}, "time": times[2]})
    await configure(server, application, mode="blacklist", deviceIds=[id_of(other)])
    await server.call("DELETE", other)
    await configure(server, application, mode="blacklist", deviceIds=[id_of(other)], includeDevices=True)
    log = await done(server, application, "backfillArchiveData")
    days = [days_ago(server, days)[1] for days in (400, 50, 33)]
    files = sorted(path.name for path in folder(server, application).rglob("*.csv"))
    assert files == [f"{day}.states.csv" for day in days]
    assert log["output"]["files"] == 3
    span = days_ago(server, 32)[0] - days_ago(server, 400)[0]
    assert log["progress"] == {
        "completed": span // DAY_MS + 1,
        "total": span // DAY_MS + 1,
        "status": "completed",
    }
    assert (await done(server, application, "backfillArchiveData"))["output"]["files"] == 0


async def test_what_the_server_has_lost_stays_in_the_archive(server: Server) -> None:
    """A day that is archived again replaces its files, and keeps those that it does not write again."""
    application = await server.application()
    start_ms, day = days_ago(server, 40)
    devices = [await server.device(application, name) for name in ("a", "b")]
    for device in devices:
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}, "time": start_ms})
    await configure(server, application)
    await done(server, application, "archiveData", date=start_ms)
    path = folder(server, application) / f"manifests/days/{day[:4]}/{day}.jsonl"
    before = manifest(path)
    await remove(server, devices[0], start_ms + DAY_MS)
    await server.call("POST", f"{devices[1]}/state", {"data": {"temp": 2}, "time": start_ms + 1})
    await done(server, application, "archiveData", date=start_ms)
    after = manifest(path)
    assert before.keys() == after.keys()
    first, second = after
    assert after[first] == before[first]
    assert [before[second]["rows"], after[second]["rows"]] == [1, 2]


async def test_events_and_data_tables_are_archived(server: Server) -> None:
    application = await server.application()
    columns = [
        {"name": "place", "dataType": "string", "constraint": "optional"},
        {"name": "score", "dataType": "number", "constraint": "optional"},
    ]
    tables = []
    for name in ("inspections", "other"):
        made = await server.call("POST", f"{application}/data-tables", {"name": name, "columns": columns})
        tables.append(made["id"])
        await server.call(
            "POST", f"{application}/data-tables/{made['id']}/rows", [{"place": "a", "score": 1.5}]
        )
    event = {"subject": "leak", "level": "error", "message": "wet", "data": {"a": 1}}
    event_id = (await server.call("POST", f"{application}/events", event))["id"]
    change = {"state": "resolved", "comment": "dry"}
    await server.call("PATCH", f"{application}/events/{event_id}", change)
    _, today = days_ago(server, 0)
    await configure(
        server, application, includeEvents=True, dataTablesMode="whitelist", dataTableIds=[tables[0]]
    )
    await done(server, application, "fullDataTablesArchive")
    await done(server, application, "fullEventsArchive")
    root = folder(server, application)
    (line,) = manifest(root / f"manifests/dataTables/{today}.jsonl").values()
    assert (line["dataTableId"], line["name"], line["rows"]) == (tables[0], "inspections", 1)
    (row,) = table(root / line["path"])
    assert (row["place"], row["score"]) == ("a", "1.5")
    (line,) = manifest(root / f"manifests/allEvents/{today}.jsonl").values()
    (row,) = table(root / line["path"])
    assert (row["id"], row["state"], row["data"]) == (event_id, "resolved", '{"a":1}')
    assert [each.get("comment") for each in json.loads(row["updates"])] == ["dry"]
    # Later the day has an archive of its own.
    server.move_clock(33 * 86_400)
    server.token = await server.log_in()
    await done(server, application, "archiveData", date=today)
    assert table(root / f"events/{today[:4]}/{today[5:7]}/{today}.csv") == [row]
    manifest(root / f"manifests/days/{today[:4]}/{today}.jsonl")


# The configuration.


WRONG: list[tuple[Json, str]] = [
    ({"directory": "../other"}, "archiveConfig.directory"),
    ({"directory": "/etc"}, "archiveConfig.directory"),
    ({"directory": "a/.drafts"}, "archiveConfig.directory"),
    ({"deviceIds": ["0" * 24]}, "archiveConfig.deviceIds[0]"),
    ({"dataTableIds": ["0" * 24]}, "archiveConfig.dataTableIds[0]"),
    ({"mode": "whitelist"}, "archiveConfig.mode"),
    ({"dataTablesMode": "whitelist"}, "archiveConfig.dataTablesMode"),
    ({"delayDays": 0}, "archiveConfig.delayDays"),
    ({"s3": {"bucket": "my-bucket"}}, "archiveConfig.s3.accessKeyId"),
    ({"s3": {"bucket": "evil.example.com/x"}}, "archiveConfig.s3.bucket"),
    ({"s3": {"bucket": "my-bucket", "region": "x.example.com/"}}, "archiveConfig.s3.region"),
    ({"gcs": {"bucket": "b"}}, "archiveConfig.gcs"),
    ({"azure": {"bucket": "b"}}, "archiveConfig.azure"),
    ({"credentialName": "c"}, "archiveConfig.credentialName"),
    (
        {"applicationExportOptions": {"credentialName": "c"}},
        "archiveConfig.applicationExportOptions.credentialName",
    ),
]


async def test_a_wrong_configuration_is_refused(server: Server) -> None:
    application = await server.application()
    for config, field in WRONG:
        refused = await server.call("PATCH", application, {"archiveConfig": config}, status=400)
        assert refused["message"].startswith(f"{field}:"), refused
    assert "archiveConfig" not in await server.call("GET", application)


async def test_the_secret_of_a_bucket_is_never_shown_and_stays(server: Server) -> None:
    application = await server.application()
    bucket = {"bucket": "my-bucket", "accessKeyId": "KEYID", "secretAccessKey": "PLANTED-SECRET"}
    shown = await server.call("PATCH", application, {"archiveConfig": {"s3": bucket}})
    assert shown["archiveConfig"]["s3"] == {"bucket": "my-bucket", "accessKeyId": "KEYID"}
    # What was read can be sent back.
    config = {**shown["archiveConfig"], "includeEvents": True}
    shown = await server.call("PATCH", application, {"archiveConfig": config})
    assert shown["archiveConfig"] == config
    config["s3"]["bucket"] = "other-bucket"
    refused = await server.call("PATCH", application, {"archiveConfig": config}, status=400)
    assert refused["message"].startswith("archiveConfig.s3.secretAccessKey:")
    assert not holds(Path(server.settings.data_dir), b"PLANTED-SECRET")
    await server.call("PATCH", application, {"archiveConfig": None})
    assert "archiveConfig" not in await server.call("GET", application)


async def test_without_a_configuration_nothing_is_archived(server: Server) -> None:
    application = await server.application()
    date = f"?date={days_ago(server, 40)[0]}"
    for call in (f"archiveData{date}", *OTHER_CALLS):
        refused = await server.call("GET", f"{application}/{call}", status=400)
        assert refused["message"].startswith("archiveConfig:")


async def test_a_token_that_may_only_read_archives_nothing(server: Server) -> None:
    """What the archive has of a day is not replaced by who may change nothing."""
    application = await server.application()
    device = await server.device(application)
    start_ms, day = days_ago(server, 40)
    states = [{"data": {"temp": 1}, "time": start_ms + each} for each in range(3)]
    await server.call("POST", f"{device}/state", states)
    await configure(server, application)
    await done(server, application, "archiveData", date=start_ms)
    await remove(server, device, start_ms + 1)
    reader = await api_token(server, application, "all.Application.read")
    for call in (f"archiveData?date={start_ms}", *OTHER_CALLS):
        refused = await server.call("GET", f"{application}/{call}", status=403, token=reader)
        assert f"application.{call.partition('?')[0]}" in refused["message"]
    path = folder(server, application) / f"manifests/days/{day[:4]}/{day}.jsonl"
    assert [line["rows"] for line in manifest(path).values()] == [3]
    writer = await api_token(server, application, "application.archiveData")
    await server.call("GET", f"{application}/archiveData?date={start_ms}", status=202, token=writer)


async def test_only_days_that_are_old_enough_are_archived(server: Server) -> None:
    application = await server.application()
    await configure(server, application)
    refused = await server.call("GET", f"{application}/archiveData?date=-{31 * DAY_MS - 60_000}", status=400)
    assert refused["message"].startswith("date: must be older than 31 days")
    await server.call("GET", f"{application}/archiveData?date=yesterday", status=400)
    await server.call("GET", f"{application}/archiveData", status=400)
    await server.call("GET", f"{application}/archiveData?date=-{31 * DAY_MS + 60_000}", status=202)
