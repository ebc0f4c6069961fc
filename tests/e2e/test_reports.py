"""Reports of dashboards: real mail with text, HTML and pictures, of data that the caller reaches."""

from __future__ import annotations

import email
import re
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.receivers import CallbackReceiver
from tests.e2e.server_process import OWNER, serving
from tests.e2e.test_dashboards import other_user
from tests.patience import PATIENCE_S
from trunkline.actors import server_users
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.store import keys

PLACE = {"startX": 0, "width": 2, "height": 2}
HOUR_MS = 3_600_000
AT_MS = 1_700_000_000_000
"""2023-11-14T22:13:20Z, 23:13:20 in Berlin."""

Json = dict[str, Any]
StartServer = Callable[..., Any]


async def job_of(server: Server, application: str, answer: Json) -> Json:
    """The log of a job of an application when everybody was told of its end."""
    with trio.fail_after(PATIENCE_S):
        while True:
            log: Json = await server.call("GET", f"{application}/jobLogs/{answer['jobId']}")
            told = log.get("output", {}).get("told", [])
            if "runCompletedAt" in log and all("at" in each or "problem" in each for each in told):
                return log
            await trio.sleep(0.01)


async def mails(server: Server, count: int = 1) -> list[EmailMessage]:
    """The mails in the outbox, when there are `count`, in the order of their names."""
    outbox = Path(server.settings.data_dir) / "outbox"
    with trio.fail_after(PATIENCE_S):
        while len(files := sorted(outbox.glob("*.eml"))) < count:  # noqa: ASYNC110 - a folder has no event
            await trio.sleep(0.01)
    return [email.message_from_bytes(file.read_bytes(), policy=default) for file in files]


def part(mail: EmailMessage, type: str) -> str:
    """The text or the HTML of a mail."""
    found = mail.get_body((type,))
    assert found is not None
    return str(found.get_content())


def words(mail: EmailMessage) -> str:
    """The text of a mail with one space between words."""
    return " ".join(part(mail, "plain").split())


def pictures(mail: EmailMessage) -> dict[str, bytes]:
    """The pictures by their Content-ID."""
    return {
        each["Content-ID"].strip("<>"): each.get_content()
        for each in mail.walk()
        if each.get_content_type() == "image/png"
    }


def block(number: int, type: str, title: str, config: Json) -> Json:
    """A block that stands below those before it."""
    return {"blockType": type, **PLACE, "startY": number, "title": title, "config": config}


async def farm(server: Server) -> tuple[str, str]:
    """An application with two devices that reported for a day; its path, and the id of the first."""
    application = await server.application("farm")
    north = await server.device(application, "north <b>&</b>", tags=[{"key": "room", "value": "1"}])
    south = await server.device(application, "south")
    for number, path in enumerate((north, south)):
        states = [
            {
                "time": AT_MS - hour * HOUR_MS,
                "data": {"temp": 20.5 + hour + 1000 * number, "on": hour % 2 == 0},
            }
            for hour in range(24)
        ]
        await server.call("POST", f"{path}/state", states)
        await server.call("POST", f"{path}/state", {"time": AT_MS + HOUR_MS, "data": {"temp": -999}})
    walk = [{"time": AT_MS - minute * 60_000, "data": {"label": f"48.{minute},9.25"}} for minute in range(10)]
    await server.call("POST", f"{north}/state", walk)
    return application, north.rpartition("/")[2]


async def test_a_report_shows_the_blocks_with_their_data(server: Server) -> None:
    application, north = await farm(server)
    columns = [{"name": "place", "dataType": "string", "constraint": "optional"}]
    table = (await server.call("POST", f"{application}/data-tables", {"name": "t", "columns": columns}))["id"]
    await server.call("POST", f"{application}/data-tables/{table}/rows", [{"place": "a"}, {"place": "<i>b"}])
    temp = {"attribute": "temp", "deviceIds": ["{{ctx.device}}"]}
    both = {"attribute": "temp"}
    blocks = [
        block(0, "section-header", "Start", {"content": "Two\nlines <script>"}),
        block(1, "gauge", "Newest", {"segment": temp, "gaugeMin": 0, "gaugeMax": 50}),
        block(2, "gauge", "Mean", {"segment": {**temp, "aggregation": "MEAN"}, "duration": 23 * HOUR_MS}),
        block(3, "graph", "Course", {"segments": [both], "duration": 24 * HOUR_MS}),
        block(4, "pie", "Shares", {"segments": [{**both, "label": "warm"}]}),
        block(5, "bar", "Bars", {"segments": [temp]}),
        block(6, "indicator", "Light", {"segments": [{**both, "attribute": "on"}]}),
        block(7, "device-state-table", "Table", {"attributes": ["temp"], "deviceTags": [{"fromCtx": "room"}]}),
        block(8, "device-list", "Devices", {"additionalAttributes": ["on"], "filter": "north"}),
        block(9, "device-count", "Counts", {"segments": [{"id": "all", "query": "{}"}]}),
        block(10, "data-table", "Rows", {"dataTableId": table}),
        block(11, "open-event-indicator", "Open", {}),
        block(12, "input", "Controls", {"controls": [{"type": "range", "label": "Target", "defaultValue": 7}]}),
        block(13, "custom-chart", "Own", {"segments": [{"queryType": "gauge", **temp}]}),
        block(14, "device-log", "Log", {}),
        block(15, "event-list", "Events", {}),
        block(16, "application-list", "Apps", {}),
        block(17, "map", "Places", {"attribute": "label", "deviceIds": [north], "duration": 2 * HOUR_MS}),
        block(18, "iframe", "Page", {"url": "https://example.com/?a=1&b=2"}),
    ]  # fmt: skip
    parameters = [
        {"name": "device", "type": "deviceId", "defaultValue": north},
        {"name": "room", "type": "deviceTag", "defaultValue": {"key": "room", "value": "1"}},
    ]
    body = {"name": "Überblick", "blocks": blocks, "contextConfiguration": parameters}
    made = await server.call("POST", f"{application}/dashboards", body, status=201)
    order = {
        "toEmail": ["a@example.com", "b@example.com", "a@example.com"], "subject": "Grüße", "message": "Hallo <Welt>",
        "time": AT_MS, "timezone": "Europe/Berlin", "locale": "de", "theme": "dark",
    }  # fmt: skip
    answer = await server.call("POST", f"{application}/dashboards/{made['id']}", order, status=202)
    log = await job_of(server, application, answer)
    assert (log["status"], log["resourceType"], log["output"]["blocks"]) == ("completed", "dashboard", 19)
    first, second = await mails(server, 2)
    assert {first["To"], second["To"]} == {"a@example.com", "b@example.com"}
    assert first["Subject"] == "Grüße"
    assert first["Message-ID"] != second["Message-ID"]
    text, html, shown = words(first), part(first, "html"), pictures(first)
    assert part(first, "plain").startswith(
        "Überblick\n=========\n14.11.2023, 23:13:20 (Europe/Berlin)\n\nHallo <Welt>\n"
    )
    for said in (
        "Newest ------ temp, north <b>&</b>: 20,5 (14.11.2023, 23:13:20)",
        "Mean ---- temp, north <b>&</b>: 32 (14.11.2023, 23:13:20)",
        "temp, south 24 1.020,5 1.032 1.043,5 1.020,5",
        "warm, south 1.020,5 98,03 % 14.11.2023",
        "on, south true",
        "Table ----- Device Time temp",
        "---- north <b>&</b> 14.11.2023, 23:13:20 20,5",
        "north <b>&</b> reporting true",
        "all: 2",
        "place ----- a <i>b",
        "open: 0",
        "Target 7",
        "Apps ---- Name ---- farm",
        "north <b>&</b> 48.00000 9.25000 14.11.2023, 23:13:20 10",
        "Page: https://example.com/?a=1&b=2",
    ):
        assert said in text, said
    assert "-999" not in text
    assert "north" in text
    for said in (
        "Hallo &lt;Welt&gt;",
        "Two<br>lines &lt;script&gt;",
        "north &lt;b&gt;&amp;&lt;/b&gt;",
        "&lt;i&gt;b",
        "1.043,5",
    ):
        assert said in html, said
    assert "<script" not in html
    assert "<b>" not in html
    assert "#1d232b" in html  # the paper of the dark theme
    used = re.findall(r'src="cid:([^"]+)"', html)
    assert set(used) == set(shown)
    assert len(used) == len(re.findall("<img ", html)) == log["output"]["pictures"] == 5
    assert "http" not in html.replace("https://example.com/?a=1&amp;b=2", "")
    for picture in shown.values():
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < 200_000


async def send(server: Server, dashboard: str, status: int = 202, **order: Any) -> Json:
    """Ask for a report."""
    body = {"toEmail": ["a@example.com"], **order}
    answer: Json = await server.call("POST", dashboard, body, status=status)
    return answer


async def test_a_report_of_a_users_dashboard_has_the_authority_of_the_user(server: Server) -> None:
    own, _ = await farm(server)
    value = {"segment": {"attribute": "temp"}}
    blocks = [
        {**block(0, "gauge", "Own", value), "applicationId": own.rpartition("/")[2]},
        block(1, "gauge", "None", value),
    ]
    made = await server.call("POST", "/dashboards", {"name": "d", "blocks": blocks}, status=201)
    await send(server, f"/dashboards/{made['id']}", time=AT_MS)
    (mail,) = await mails(server)
    assert mail["Subject"] == "Report: d"
    assert "temp, south 1,020.5 Nov 14, 2023, 10:13:20 PM" in words(mail)
    assert "None ---- The block names no application." in words(mail)
    # The application is deleted: its block says so, the others are there.
    await server.call("DELETE", own)
    await send(server, f"/dashboards/{made['id']}")
    (_, later) = sorted(await mails(server, 2), key=lambda each: each["Date"])
    assert "There is no application" in part(later, "plain") or "There is no application" in part(
        mail, "plain"
    )


async def test_a_revoked_token_gets_no_report(start_server: StartServer) -> None:
    """The token ends between the call and the job, which waits for the next start of the server."""
    async with start_server() as server:
        application, _ = await farm(server)
        made = await server.call("POST", f"{application}/dashboards", {"name": "d"}, status=201)
        scope = ["applicationDashboard.*"]
        token = await server.call("POST", f"{application}/tokens", {"name": "t", "scope": scope})
        await server.system.component(Jobs).stop()
        each = f"{application}/dashboards/{made['id']}"
        body = {"toEmail": ["a@example.com"]}
        answer = await server.call("POST", each, body, token=token["token"], status=202)
        await send(server, each, status=429)  # one at a time
        await server.call("PATCH", f"{application}/tokens/{token['id']}", {"status": "inactive"})
    async with start_server() as server:
        log = await job_of(server, application, answer)
        assert (log["status"], log["error"]["name"]) == ("errored", "Unauthorized")
        (mail,) = await mails(server)
        assert "was refused" in mail["Subject"]
        await send(server, each)
        assert "Report: d" in [each["Subject"] for each in await mails(server, 2)]


async def test_a_report_is_sent_without_pictures_if_they_cannot_be_drawn(start_server: StartServer) -> None:
    async with start_server(limits={"report_draw_bytes": 4096}) as server:
        application, _ = await farm(server)
        blocks = [block(0, "graph", "Course", {"segments": [{"attribute": "temp"}]})]
        made = await server.call(
            "POST", f"{application}/dashboards", {"name": "d", "blocks": blocks}, status=201
        )
        answer = await send(server, f"{application}/dashboards/{made['id']}", time=AT_MS)
        log = await job_of(server, application, answer)
        assert (log["status"], log["output"]["pictures"]) == ("completed", 0)
        (mail,) = await mails(server)
        assert (pictures(mail), "<img" in part(mail, "html")) == ({}, False)
        assert "temp, south" in part(mail, "html")


async def test_what_cannot_be_reported_is_400(server: Server) -> None:
    application, _ = await farm(server)
    parameter = {"name": "n", "type": "number", "defaultValue": 1}
    body = {"name": "d", "contextConfiguration": [parameter]}
    made = await server.call("POST", f"{application}/dashboards", body, status=201)
    refused: list[tuple[Json, str]] = [
        ({"toEmail": ["nobody"]}, "toEmail[0]: "),
        ({"toEmail": []}, "toEmail: "),
        ({"toEmail": ["a@example.com"] * 11}, "toEmail: "),
        ({"timezone": "Mars/Base"}, "timezone: 'Mars/Base' is not a time zone"),
        ({"timezone": "../../etc/passwd"}, "timezone: "),
        ({"locale": "xx-YY"}, "locale: 'xx-YY' is not a locale"),
        ({"time": 4e12}, "time: "),
        ({"time": -1}, "time: "),
        ({"theme": "blue"}, "theme: "),
        ({"ctx": {"n": "many"}}, "ctx.n: "),
    ]
    each = f"{application}/dashboards/{made['id']}"
    for order, said in refused:
        refusal = await send(server, each, status=400, **order)
        assert refusal["message"].startswith(said), (order, refusal)
    nobody = await server.call("POST", each, {"subject": "s"}, status=400)
    assert nobody["message"].startswith("toEmail: name who gets the report")
    other = await server.application("other")
    await send(server, f"{other}/dashboards/{made['id']}", status=404)
    assert (await server.call("GET", f"{application}/jobLogs"))["totalCount"] == 0


async def test_nothing_is_left_of_a_deleted_user(server: Server) -> None:
    """The jobs of a user are kept by an actor of their own; the sweeper removes them."""
    token = await other_user(server)
    user = bytes.fromhex(server_users.users(server.root)[1].id)
    daily = {"cron": "@daily", "toEmail": ["a@example.com"]}
    made = await server.call("POST", "/dashboards", {"name": "d", "reportConfigs": [daily]}, token=token)
    await server.call("POST", f"/dashboards/{made['id']}", {"toEmail": ["a@example.com"]}, token=token)
    store = server.system.store

    def left() -> list[bytes]:
        with store.snapshot() as snapshot:
            dbs = (keys.RECORDS, keys.INDEXES, keys.META, keys.COUNTS)
            return [bytes(key) for db in dbs for key in snapshot.keys(db, b"", None) if user in bytes(key)]

    def is_open() -> bool:
        return keys.jobs_key(user) in left()

    with trio.fail_after(PATIENCE_S):
        # Until it is noted that the mail was sent.
        while is_open():  # noqa: ASYNC110 - the store has no event
            await trio.sleep(0.01)
    assert any(key.startswith(b"job\x00") for key in left())
    await server_users.delete_user(server.root, "other@example.com", with_applications=True)
    while await sweep(server.system):
        pass
    assert left() == []


async def test_a_report_has_a_bound(start_server: StartServer) -> None:
    limits = {"report_characters_max": 100, "report_rows_max": 1, "report_charts_max": 1}
    async with start_server(limits=limits) as server:
        application, _ = await farm(server)
        graph = {"segments": [{"attribute": "temp"}]}
        blocks = [
            block(0, "graph", "First", graph),
            block(1, "graph", "Second {{ctx.n}}", graph),
            block(2, "section-header", "Third", {"content": "x" * 101}),
            block(3, "graph", "Fourth", graph),
        ]
        parameter = {"name": "n", "type": "number", "defaultValue": 7}
        body = {"name": "d", "blocks": blocks, "contextConfiguration": [parameter]}
        made = await server.call("POST", f"{application}/dashboards", body, status=201)
        await send(server, f"{application}/dashboards/{made['id']}", time=AT_MS)
        (mail,) = await mails(server)
        assert len(pictures(mail)) == 1
        assert words(mail).count("1 more") == 2
        assert "Second 7 --- Series" in words(mail).replace("-----", "")
        assert "Fourth ------ The report would be too large with this block." in words(mail)


@pytest.mark.slow
async def test_a_report_that_was_made_before_a_kill_is_sent_after_it(tmp_path: Path) -> None:
    """The first server has made the mail and reaches no mail server. The second one puts it into the outbox."""
    data_dir = tmp_path / "data"
    receiver = CallbackReceiver()
    receiver.reserve()  # nobody listens at its port
    port = str(receiver.port)
    env = {
        **OWNER,
        "TRUNKLINE_SMTP_HOST": "127.0.0.1",
        "TRUNKLINE_SMTP_PORT": port,
        "TRUNKLINE_SMTP_TLS": "none",
    }
    async with serving(data_dir, env=env) as server:
        made = await server.call("POST", "/dashboards", {"name": "d"}, status=201)
        await send(server, f"/dashboards/{made['id']}", toEmail=["a@example.com", "b@example.com"])
        with trio.fail_after(PATIENCE_S):
            while not list((data_dir / "results").glob("?" * 48)):  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)
        await server.kill()
    async with serving(data_dir) as server:
        with trio.fail_after(PATIENCE_S):
            while len(list((data_dir / "outbox").glob("*.eml"))) < 2:  # noqa: ASYNC110 - a folder has no event
                await trio.sleep(0.01)
        assert await server.terminate() == 0
    files = sorted((data_dir / "outbox").glob("*.eml"))
    sent = [email.message_from_bytes(file.read_bytes(), policy=default) for file in files]
    assert [each["To"] for each in sent] == ["a@example.com", "b@example.com"]
    assert {each["Subject"] for each in sent} == {"Report: d"}
