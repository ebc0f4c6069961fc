"""The health of applications: the verdict, and the reasons for it."""

from __future__ import annotations

from typing import Any

from tests.actors.house import ManualClock
from tests.e2e.conftest import PASSWORD, Server
from tests.e2e.sse_client import until
from tests.e2e.test_exports import export
from tests.e2e.test_flow_runs import press
from trunkline.actors import server_users
from trunkline.actors.connections.integrations.connections import Connections

STATE = {"data": {"temp": 1}}


async def health(server: Server, application: str) -> dict[str, Any]:
    return dict(await server.call("GET", f"{application}/health"))


async def reasons(server: Server, application: str) -> list[tuple[str, str, int, str]]:
    """Kind, level, number and sentence of each reason."""
    shown = await health(server, application)
    return [(each["kind"], each["level"], each["number"], each["message"]) for each in shown["reasons"]]


async def test_a_dead_fleet_is_critical_and_one_silent_device_of_many_is_not(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        application = await server.application()
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("unknown", "There are no devices yet.")
        devices = [await server.device(application, f"pump {number}") for number in range(4)]
        clock.pass_s(2)
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("unknown", "No device has reported yet.")
        assert [each["kind"] for each in shown["reasons"]] == ["neverSeenDevices"]
        for device in devices:
            await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(2)
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("ok", "4 of 4 devices are reporting.")
        assert shown["reasons"] == []
        clock.pass_s(290)
        for device in devices[1:]:
            await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(10)
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("warning", "1 of 4 devices is silent.")
        assert shown["reasons"][0]["items"] == [{"id": devices[0].rpartition("/")[2], "name": "pump 0"}]
        assert shown["reasons"][0]["operation"] == "application.silentDevices"
        clock.pass_s(400)
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("critical", "4 of 4 devices are silent.")
        assert shown["devices"]["silent"] == 4
        # Among very many that report, one that is silent is said and alarms nobody.
        for number in range(197):
            device = await server.device(application, f"more {number}")
            await server.call("POST", f"{device}/state", STATE)
        for device in devices[1:]:
            await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(60)
        shown = await health(server, application)
        assert (shown["verdict"], shown["message"]) == ("ok", "200 of 201 devices are reporting.")
        assert [each["level"] for each in shown["reasons"]] == ["info"]


async def test_events_refusals_and_failed_jobs_are_reasons_the_worst_first(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits={"send_command": {"calls": 1, "window_s": 60}}) as server:
        application = await server.application()
        device = await server.device(application)
        await server.call("POST", f"{device}/state", STATE)
        await server.call("POST", f"{device}/state", {"data": {"temp": "warm"}}, status=400)
        event = await server.call(
            "POST", f"{application}/events", {"level": "critical", "state": "new", "subject": "Hot"}
        )
        errors = [
            await server.call(
                "POST", f"{application}/events", {"level": "error", "state": "new", "subject": f"No {number}"}
            )
            for number in range(7)
        ]
        clock.pass_s(2)
        first, second, _ = (await health(server, application))["reasons"]
        assert first["items"] == [{"id": event["id"], "name": event["subject"]}]
        assert [each["name"] for each in second["items"]] == ["No 6", "No 5", "No 4", "No 3", "No 2"]
        for error in errors[1:]:
            await server.call("PATCH", f"{application}/events/{error['id']}", {"state": "resolved"})
        clock.pass_s(2)
        assert await reasons(server, application) == [
            ("openEvents", "critical", 1, "1 new critical event is open."),
            ("openEvents", "warning", 1, "1 new error event is open."),
            (
                "refusals", "warning", 1,
                "1 message was refused in the last ten minutes, the last one because of invalid.",
            ),
        ]  # fmt: skip
        await server.call("PATCH", f"{application}/events/{event['id']}", {"state": "acknowledged"})
        clock.pass_s(2)
        assert (await health(server, application))["verdict"] == "warning"
        for _ in range(10):
            await server.call("POST", f"{device}/state", {"data": {"temp": "warm"}}, status=400)
        assert (await reasons(server, application))[0][:3] == ("refusals", "critical", 11)
        clock.pass_s(700)
        await server.call("POST", f"{device}/state", STATE)
        clock.pass_s(2)
        kinds = [each[0] for each in await reasons(server, application)]
        assert kinds == ["openEvents", "openEvents"]


FAILING = {
    "name": "Alarm",
    "triggers": [{"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["t"]]}],
    "nodes": [{"id": "t", "type": "ThrowErrorNode", "config": {"messageTemplate": "It is broken"}}],
}


async def test_workflows_that_fail_are_named(server: Server) -> None:
    application = await server.application()
    flow = await server.call("POST", f"{application}/flows", FAILING)
    for _ in range(5):
        await press(server, f"{application}/flows/{flow['id']}", {})
    shown = await health(server, application)
    assert (shown["verdict"], shown["message"]) == (
        "critical",
        "5 of 5 runs of Alarm failed in the last hour.",
    )
    assert shown["reasons"][0]["items"] == [{"id": flow["id"], "name": "Alarm", "number": 5}]


async def test_integrations_that_are_down_are_named(start_server: Any) -> None:
    async with start_server(callback_private_networks=True) as server:
        application = await server.application()
        config = {"protocol": "mqtt", "host": "127.0.0.1", "port": 1}
        body = {"name": "broker", "integrationType": "mqtt", "topics": ["a"], "mqttConfig": config}
        made = await server.call("POST", f"{application}/integrations", {**body, "enabled": True})
        await until(lambda: server.system.component(Connections).counts["failed"] > 0)
        shown = await health(server, application)
        assert shown["verdict"] == "critical"
        (reason,) = shown["reasons"]
        assert reason["message"].startswith("1 of 1 integration is not connected: ")
        assert reason["items"] == [{"id": made["id"], "name": "broker"}]


async def test_failed_jobs_of_the_last_day_are_counted(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock, limits={"job_result_bytes_max": 100}) as server:
        application = await server.application()
        device = await server.device(application)
        await server.call("POST", f"{device}/state", [STATE, STATE])
        _, log = await export(server, device)
        assert log["status"] == "errored"
        (reason,) = (await health(server, application))["reasons"]
        assert (reason["kind"], reason["level"], reason["number"]) == ("failedJobs", "warning", 1)
        clock.pass_s(86_401)
        server.token = await server.log_in()
        assert [each[0] for each in await reasons(server, application)] == ["silentDevices"]


async def test_the_health_of_all_applications_of_a_user_is_one_answer(start_server: Any) -> None:
    clock = ManualClock()
    async with start_server(clock=clock) as server:
        for name in ("a", "b", "c"):
            application = await server.application(name)
            if name != "c":
                await server.call("POST", f"{await server.device(application)}/state", STATE)
            if name == "a":
                event = {"level": "critical", "state": "new", "subject": "Hot"}
                await server.call("POST", f"{application}/events", event)
        shown = await server.call("GET", "/applications/health")
        assert [(each["name"], each["verdict"]) for each in shown["items"]] == [
            ("a", "critical"), ("b", "ok"), ("c", "unknown")
        ]  # fmt: skip
        assert shown["verdicts"] == {"critical": 1, "warning": 0, "ok": 1, "unknown": 1}
        shown = await server.call("GET", "/applications/health?perPage=1&page=1")
        assert ([each["name"] for each in shown["items"]], shown["totalCount"]) == (["b"], 3)
        await server.call("GET", "/applications/health?perPage=26", status=400)
        await server_users.add_user(server.root, "eve@example.com", PASSWORD)
        token = (await server.call("POST", "/auth/user", {"email": "eve@example.com", "password": PASSWORD}))[
            "token"
        ]
        assert (await server.call("GET", "/applications/health", token=token))["items"] == []
        await server.call("GET", f"{application}/health", token=token, status=403)
