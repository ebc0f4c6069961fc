"""Reports on schedules, as their readers get them: of dashboards of applications, of users and of organizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from tests.e2e.conftest import MovedClock, Server
from tests.e2e.test_reports import job_of, mails, words
from tests.patience import PATIENCE_S
from trunkline.actors.presentation.dashboards.scheduled_reports import ScheduledReports

DAY_S = 86_400
StartServer = Callable[..., Any]
Json = dict[str, Any]


def daily(to: str, **fields: Any) -> Json:
    return {"cron": "0 6 * * *", "timezone": "Europe/Berlin", "toEmail": [to], "subject": to, **fields}


async def pass_a_day(server: Server, clock: MovedClock) -> None:
    """A day later, all that was due since is queued."""
    reports = server.system.component(ScheduledReports)
    clock.ahead_s += DAY_S
    reports.alarm.look()
    with trio.fail_after(PATIENCE_S):
        while not reports.alarm.is_waiting:  # noqa: ASYNC110 - the alarm has no event
            await trio.sleep(0.01)


async def test_reports_come_each_day(start_server: StartServer) -> None:
    clock = MovedClock(0.0)
    async with start_server(clock=clock) as server:
        application = await server.application()
        organization = (await server.organization()).rpartition("/")[2]
        own = {"name": "of one", "reportConfigs": [daily("own@example.com")]}
        shared = {"name": "of many", "orgId": organization, "reportConfigs": [daily("org@example.com")]}
        plant = {"name": "of a plant", "reportConfigs": [daily("plant@example.com", message="Good morning")]}
        await server.call("POST", "/dashboards", own, status=201)
        await server.call("POST", "/dashboards", shared, status=201)
        made = await server.call("POST", f"{application}/dashboards", plant, status=201)
        assert made["reportConfigs"] == plant["reportConfigs"]
        assert not {"reportsBy", "authors"} & made.keys()
        await pass_a_day(server, clock)
        by_reader = {mail["To"]: mail for mail in await mails(server, 3)}
        assert by_reader.keys() == {"own@example.com", "org@example.com", "plant@example.com"}
        assert "of a plant" in words(by_reader["plant@example.com"])
        assert "Good morning" in words(by_reader["plant@example.com"])
        await pass_a_day(server, clock)
        assert len(await mails(server, 6)) == 6


async def test_who_has_scheduled_a_report_must_still_reach_it(start_server: StartServer) -> None:
    """The readers of the report are told that it was refused."""
    clock = MovedClock(0.0)
    async with start_server(clock=clock) as server:
        application = await server.application()
        token = await server.call(
            "POST",
            f"{application}/tokens",
            {"name": "t", "scope": ["applicationDashboards.*", "applicationDashboard.*"]},
        )
        body = {"name": "d", "reportConfigs": [daily("a@example.com")]}
        await server.call("POST", f"{application}/dashboards", body, token=token["token"], status=201)
        await server.call("PATCH", f"{application}/tokens/{token['id']}", {"status": "inactive"})
        await pass_a_day(server, clock)
        (mail,) = await mails(server)
        assert "was refused" in mail["Subject"]
        (log,) = (await server.call("GET", f"{application}/jobLogs"))["items"]
        log = await job_of(server, application, {"jobId": log["id"]})
        assert (log["status"], log["error"]["name"]) == ("errored", "Unauthorized")
        assert log["requestedByType"] == "apiToken"


async def test_a_dashboard_takes_its_schedule_to_another_owner(start_server: StartServer) -> None:
    clock = MovedClock(0.0)
    async with start_server(clock=clock) as server:
        organization = (await server.organization()).rpartition("/")[2]
        body = {"name": "d", "reportConfigs": [daily("a@example.com")]}
        made = await server.call("POST", "/dashboards", body, status=201)
        given = {
            "destinationId": organization,
            "destinationType": "organization",
            "dashboardIds": [made["id"]],
        }
        await server.call("PATCH", "/me/transferResources", given)
        await pass_a_day(server, clock)
        (mail,) = await mails(server)
        assert (mail["To"], mail["Subject"]) == ("a@example.com", "a@example.com")


async def test_a_schedule_needs_the_right_to_send(start_server: StartServer) -> None:
    async with start_server() as server:
        application = await server.application()
        token = await server.call(
            "POST", f"{application}/tokens", {"name": "t", "scope": ["applicationDashboards.*"]}
        )
        body = {"name": "d", "reportConfigs": [daily("a@example.com")]}
        path = f"{application}/dashboards"
        refusal = await server.call("POST", path, body, token=token["token"], status=403)
        assert refusal["message"].startswith("reportConfigs: a token that schedules reports needs the scope")
        assert (await server.call("GET", path))["totalCount"] == 0
