"""Exports end to end: queued, written whole, fetched by a link, and gone when the link has expired."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.e2e.conftest import EMAIL, Server, running_server
from tests.e2e.rows import api_token
from tests.e2e.server_process import trunkline
from tests.patience import PATIENCE_S
from trunkline.actors.maintenance import sweep as purge
from trunkline.actors.platform.jobs.runner import Jobs

DAY_S = 86_400


async def ended(server: Server, application: str, job: str, token: str | None = None) -> dict[str, Any]:
    """The log of a job when it has ended and everybody was told, or could not be."""
    with trio.fail_after(PATIENCE_S):
        while True:
            log: dict[str, Any] = await server.call("GET", f"{application}/jobLogs/{job}", token=token)
            told = log.get("output", {}).get("told", [])
            if "runCompletedAt" in log and all("at" in way or "problem" in way for way in told):
                return log
            await trio.sleep(0.01)


async def export(server: Server, device: str, body: Any = None, **query: Any) -> tuple[str, dict[str, Any]]:
    """Export a device; the application's path and the log of the job when it has ended."""
    queued = await server.call("POST", f"{device}/export", body, status=202, params=query)
    assert queued["success"] is queued["jobQueued"] is True
    assert len(queued["jobId"]) <= 21
    application = device.partition("/devices/")[0]
    return application, await ended(server, application, queued["jobId"])


async def fetched(server: Server, url: str) -> httpx.Response:
    """What a link leads to, for somebody without a token."""
    assert url.startswith(server.url)
    async with server.client("") as client:
        return await client.get(url)


def rows(response: httpx.Response) -> list[list[str]]:
    assert response.status_code == 200, response.text
    return list(csv.reader(io.StringIO(response.content.decode("utf-8"), newline=""), strict=True))


def letters(server: Server) -> list[EmailMessage]:
    """The mails in the outbox, oldest first."""
    found = sorted(
        (Path(server.settings.data_dir) / "outbox").glob("*.eml"), key=lambda path: path.stat().st_mtime_ns
    )
    messages = [message_from_bytes(path.read_bytes(), policy=policy.default) for path in found]
    return [message for message in messages if isinstance(message, EmailMessage)]


async def test_a_job_that_is_not_there_is_404_in_the_words_of_the_call(server: Server) -> None:
    application = await server.application()
    for job in ("A" * 16, "0" * 24):
        answer = await server.call("GET", f"{application}/jobLogs/{job}", status=404)
        assert answer["message"] == "There is no such job here; old jobs are deleted."


async def test_an_export_is_queued_written_and_fetched_by_the_link_in_a_mail(server: Server) -> None:
    device = await server.device(await server.application())
    states = [{"data": {"temp": number / 2}, "time": 1_700_000_000_000 + number} for number in range(300)]
    await server.call("POST", f"{device}/state", states)
    _, log = await export(server, device)
    assert (log["status"], log["name"], log["resourceType"]) == ("completed", "device.export", "device")
    assert log["progress"] == {"completed": 300, "status": "completed"}
    assert log["output"]["told"][0].items() >= {"by": "email", "to": EMAIL}.items()
    (letter,) = letters(server)
    assert letter["To"] == EMAIL
    assert "device.export has completed" in str(letter["Subject"])
    link = log["output"]["file"]["url"]
    assert link in letter.get_content().split()
    response = await fetched(server, link)
    header, *lines = rows(response)
    id = device.rpartition("/")[2]
    assert header == ["deviceId", "time", "date", "temp", "label", "on"]
    assert lines[1] == [id, "1700000000001", "2023-11-14T22:13:20.001Z", "0.5", "", ""]
    assert [float(line[3]) for line in lines] == [number / 2 for number in range(300)]
    digest = hashlib.sha256(response.content)
    assert log["output"]["file"]["sha256"] == digest.hexdigest()
    assert response.headers["repr-digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert int(response.headers["content-length"]) == log["output"]["file"]["size"] == len(response.content)
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"] == f'attachment; filename="device-{id}.csv"'
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_an_export_has_all_that_a_removal_of_the_same_range_removes(server: Server) -> None:
    """Also what a device reported whose clock was never set."""
    application = await server.application()
    device = await server.device(application)
    states = [
        {"data": {"temp": time}, "time": {"$date": f"1970-01-01T00:00:00.00{time}Z"}} for time in (0, 1)
    ]
    await server.call("POST", f"{device}/state", states)
    found = await server.call("GET", f"{device}/state?start=1&limit=9")
    assert [each["data"]["temp"] for each in found] == [1, 0]
    for path, body in (
        (f"{device}/export", {}),
        (f"{device}/export", {"start": 1}),
        (f"{application}/data/export", {"email": EMAIL}),
        (f"{application}/data/export", {"email": EMAIL, "start": "1"}),
    ):
        queued = await server.call("POST", path, body, status=202)
        log = await ended(server, application, queued["jobId"])
        lines = rows(await fetched(server, log["output"]["file"]["url"]))[1:]
        assert [line[1] for line in lines] == ["0", "1"], path
    queued = await server.call("DELETE", f"{device}/data?start=1", status=202)
    await ended(server, application, queued["jobId"])
    assert await server.call("GET", f"{device}/state?limit=9") == []


async def test_what_is_exported_can_be_chosen(server: Server) -> None:
    device = await server.device(await server.application())
    for number in range(4):
        data = {"temp": number, "label": "x"} if number % 2 else {"on": True}
        await server.call("POST", f"{device}/state", {"data": data, "time": 1_700_000_000_000 + number})
    options = {"includeDate": False, "includeID": False}
    body = {"attributes": ["label", "temp"], "start": 1_700_000_000_000, "end": 1_700_000_000_002}
    _, log = await export(server, device, {**body, "options": options})
    assert rows(await fetched(server, log["output"]["file"]["url"])) == [
        ["time", "label", "temp"],
        ["1700000000001", "x", "1"],
    ]
    _, log = await export(server, device, {"options": options}, start=1_700_000_000_002)
    assert rows(await fetched(server, log["output"]["file"]["url"])) == [
        ["time", "temp", "label", "on"],
        ["1700000000002", "", "", "true"],
        ["1700000000003", "3", "x", ""],
    ]


async def test_no_two_columns_have_the_same_name(server: Server) -> None:
    """A reader by names would take the value of an attribute `time` for the time."""
    application = await server.application()
    names = ("time", "date", "deviceId", "temp")
    attributes = [{"name": name, "dataType": "number"} for name in names]
    device = await server.device(application, attributes=attributes)
    data = {name: number for number, name in enumerate(names)}
    await server.call("POST", f"{device}/state", {"data": data, "time": 1_700_000_000_000})

    async def columns(exported: str, body: dict[str, Any]) -> tuple[list[str], list[str]]:
        queued = await server.call("POST", f"{exported}/export", body, status=202)
        log = await ended(server, application, queued["jobId"])
        header, line = rows(await fetched(server, log["output"]["file"]["url"]))
        return header, line

    for exported in (device, f"{application}/data"):
        header, line = await columns(exported, {})
        assert header == ["deviceId", "time", "date", "$time", "$date", "$deviceId", "temp"]
        assert line[3:] == ["0", "1", "2", "3"]
        header, _ = await columns(exported, {"options": {"includeDate": False, "includeID": False}})
        assert header == ["time", "$time", "date", "deviceId", "temp"]


async def test_texts_that_spreadsheets_would_run_are_marked_and_counted(server: Server) -> None:
    device = await server.device(await server.application())
    texts = ["=1+1", "plain", 'a "quoted", text\r\nof two lines', "'", "-", "", "æ"]
    for number, text in enumerate(texts):
        state = {"data": {"label": text}, "time": 1_700_000_000_000 + number}
        await server.call("POST", f"{device}/state", state)
    _, log = await export(server, device, {"attributes": ["label"], "options": {"includeID": False}})
    response = await fetched(server, log["output"]["file"]["url"])
    assert log["output"]["escapedTexts"] == 3
    found = [line[2] for line in rows(response)[1:]]
    assert found == ["'=1+1", "plain", 'a "quoted", text\r\nof two lines', "''", "'-", "", "æ"]
    assert [text.removeprefix("'") for text in found] == texts
    (letter,) = letters(server)
    assert "3 texts" in letter.get_content()


async def test_the_address_in_the_body_goes_before_that_in_the_query(server: Server) -> None:
    device = await server.device(await server.application())
    for body, told in (
        ({"email": "body@example.com"}, "body@example.com"),
        ({"attributes": []}, "query@example.com"),
        (None, "query@example.com"),
    ):
        _, log = await export(server, device, body, email="query@example.com")
        assert log["output"]["told"][0]["to"] == told


async def test_a_refused_export_queues_nothing(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    refused = await server.call("POST", f"{device}/export", {"attributes": ["speed"]}, status=400)
    assert "attributes[0]" in refused["message"]
    await server.call("POST", f"{device}/export", {"email": "nobody"}, status=400)
    await server.call("POST", f"{device}/export", {"email": "a,b@c@d"}, status=400)
    await server.call("POST", f"{application}/devices/{'0' * 24}/export", status=404)
    assert (await server.call("GET", f"{application}/jobLogs"))["items"] == []


async def test_a_second_export_of_a_device_is_refused_while_the_first_is_open(
    start_server: Callable[..., Any],
) -> None:
    """There is no room for results, so the first one waits for its next attempt."""
    async with start_server(limits={"job_results_bytes_max": 1, "job_pause_s": 3600}) as server:
        application = await server.application()
        device = await server.device(application)
        queued = await server.call("POST", f"{device}/export", status=202)
        refused = await server.call("POST", f"{device}/export", status=429)
        assert "this device is queued or runs" in refused["message"]
        await server.call("POST", f"{await server.device(application)}/export", status=202)
        assert len((await server.call("GET", f"{application}/jobLogs"))["items"]) == 2
    async with start_server() as server:
        log = await ended(server, application, queued["jobId"])
        assert log["status"] == "completed"
        await server.call("POST", f"{device}/export", status=202)


@contextmanager
def results_away(data: Path) -> Iterator[None]:
    """Meanwhile there are no folders for the results of jobs."""
    folders = [data / "results", *data.glob("partitions/*/results")]
    for folder in folders:
        folder.rename(folder.with_name("away"))
        folder.write_text("no folder")
    yield
    for folder in folders:
        folder.unlink()
        folder.with_name("away").rename(folder)


async def test_a_job_that_cannot_use_its_files_names_no_file_of_the_server(
    start_server: Callable[..., Any],
) -> None:
    async with start_server(limits={"job_attempts_max": 1}) as server:
        with results_away(Path(server.settings.data_dir)):
            device = await server.device(await server.application())
            _, log = await export(server, device)
    assert log["status"] == "failed"
    assert log["error"]["message"] == "The server could not read or write a file; its log says why."


async def test_a_link_that_was_changed_is_no_link(server: Server) -> None:
    device = await server.device(await server.application())
    _, log = await export(server, device)
    link = log["output"]["file"]["url"]
    head, _, signature = link.rpartition(".")
    changed = "A" if signature[0] != "A" else "B"
    for forged in (
        f"{head}.{changed}{signature[1:]}",
        link[:-5],
        f"{server.url}/downloads?token={server.token}",
    ):
        response = await fetched(server, forged)
        assert response.status_code == 403, forged
        assert "not a link of this server" in response.json()["message"]
    await server.call("GET", "/me", token=link.partition("=")[2], status=401)


async def test_a_link_expires_and_its_file_is_removed(server: Server) -> None:
    device = await server.device(await server.application())
    _, log = await export(server, device)
    results = Path(server.settings.data_dir) / "results"
    assert len(list(results.glob("?" * 48))) == 1
    server.move_clock(7 * DAY_S - 60)
    assert (await fetched(server, log["output"]["file"]["url"])).status_code == 200
    assert await server.system.component(Jobs).results.sweep() == 0
    server.move_clock(120)
    response = await fetched(server, log["output"]["file"]["url"])
    assert response.status_code == 404
    assert "expired" in response.json()["message"]
    assert await server.system.component(Jobs).results.sweep() == 1
    assert list(results.glob("?" * 48)) == []


async def test_a_result_goes_with_its_application(server: Server) -> None:
    application = await server.application()
    _, log = await export(server, await server.device(application))
    await server.call("DELETE", application)
    while await purge.sweep(server.system):
        pass
    assert await server.system.component(Jobs).results.sweep() == 1
    assert (await fetched(server, log["output"]["file"]["url"])).status_code == 404


async def test_a_backup_has_no_results_and_says_so(server: Server, tmp_path: Path) -> None:
    application, log = await export(server, await server.device(await server.application()))
    target = tmp_path / "backup"
    done = await trunkline("backup", str(target), "--data", server.settings.data_dir)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in target.iterdir()) == [
        "encryption-keys",
        "manifest.json",
        "secret",
        "store",
    ]
    assert (await trunkline("check", "--data", str(target))).returncode == 0
    async with running_server(target) as restored:
        again = await restored.call("GET", f"{application}/jobLogs/{log['id']}")
        assert again["output"]["file"]["sha256"] == log["output"]["file"]["sha256"]
        response = await fetched(restored, again["output"]["file"]["url"])
        assert response.status_code == 404
        assert "run the job again" in response.json()["message"]


async def test_the_link_is_shown_to_those_only_who_may_export(server: Server) -> None:
    application, log = await export(server, await server.device(await server.application()))
    path = f"{application}/jobLogs/{log['id']}"
    for scopes, shown in (
        (["applicationJobLog.get"], False),
        (["applicationJobLog.get", "devices.export"], False),
        (["all.Application.read"], True),
        (["applicationJobLog.get", "device.export"], True),
        (["all.Application"], True),
    ):
        token = await api_token(server, application, *scopes)
        seen = await server.call("GET", path, token=token)
        assert ("url" in seen["output"]["file"]) is shown, scopes


@pytest.mark.parametrize("states", [1, 10_000])
async def test_a_file_that_the_disk_changed_does_not_arrive_whole(server: Server, states: int) -> None:
    """A small one is not begun, a large one breaks off before its last bytes."""
    device = await server.device(await server.application())
    points = [{"data": {"temp": number}, "time": 1_700_000_000_000 + number} for number in range(states)]
    await server.call("POST", f"{device}/state", points)
    _, log = await export(server, device)
    (file,) = (Path(server.settings.data_dir) / "results").glob("?" * 48)
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    assert (await trunkline("check", "--data", server.settings.data_dir)).returncode == 0
    file.write_bytes(content)
    checked = await trunkline("check", "--data", server.settings.data_dir)
    assert checked.returncode == 1
    assert f"results {file.name}: " in "".join(checked.stdout.split("\n"))
    try:
        response = await fetched(server, log["output"]["file"]["url"])
    except httpx.RemoteProtocolError:
        return
    assert states == 1
    assert response.status_code == 500


async def test_a_download_of_head_and_its_bound(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"downloads_max": 1}) as server:
        device = await server.device(await server.application())
        _, log = await export(server, device)
        link = log["output"]["file"]["url"]
        async with server.client("") as client:
            head = await client.head(link)
            assert head.status_code == 200
            assert int(head.headers["content-length"]) == log["output"]["file"]["size"]
        assert server.system.component(Jobs).results.downloads == 0
        assert (await fetched(server, link)).status_code == 200
        assert (await fetched(server, link)).status_code == 200


async def test_a_result_over_its_bound_ends_the_job_with_a_sentence(start_server: Callable[..., Any]) -> None:
    async with start_server(limits={"job_result_bytes_max": 100}) as server:
        device = await server.device(await server.application())
        for _ in range(2):
            await server.call("POST", f"{device}/state", {"data": {"temp": 1}})
        _, log = await export(server, device)
        assert log["status"] == "errored"
        assert log["error"]["name"] == "PayloadTooLarge"
        results = Path(server.settings.data_dir) / "results"
        assert [path.name for path in results.rglob("*") if path.is_file()] == ["lock"]
