"""Times in queries: ISO text, numbers with decimals and texts of a URL mean the same, wherever a query takes a time."""

from __future__ import annotations

import re
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from tests.e2e.conftest import Json, Server
from tests.e2e.device_calls import id_of
from tests.e2e.test_exports import ended
from trunkline.actors.core.values.terms import QueryTime
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE

AT_MS = 1_763_683_200_000
AT_ISO = "2025-11-21T00:00:00Z"
NAMES = {"start", "end", "since"}

HISTORIES = ["device.getState", "device.getCommand", "device.getLogEntries"]
RANGES = [
    "application.deviceCounts",
    "application.notebookMinuteCounts",
    "application.payloadCounts",
    "application.payloadCountsBreakdown",
    "applications.periodSummaries",
    "auditLogs.get",
    "userAuditLogs.get",
    "device.getCompositeState",
    "device.payloadCounts",
    "device.payloadCountsBreakdown",
    "devices.getCompositeState",
    "me.deviceCounts",
    "me.notebookMinuteCounts",
    "me.payloadCounts",
    "me.payloadCountsBreakdown",
    "org.deviceCounts",
    "org.notebookMinuteCounts",
    "org.payloadCounts",
    "org.payloadCountsBreakdown",
]
RUNS = [f"{of}.{what}" for of in ("flow", "flowVersion") for what in ("errors", "getLogEntries", "stats")]
"""What workflows did: `tests/e2e/test_flows.py`."""

BODIES = ["data.timeSeriesQuery", "data.lastValueQuery"]
EXPORTS = ["data.export", "device.export"]
ELSEWHERE = {
    "application.importLogs": "test_application_contents.py",
    "applicationDashboard.data": "test_dashboard_data.py",
    "applicationDashboard.preview": "test_dashboard_preview.py",
    "dashboard.data": "test_dashboard_data.py",
    "dashboard.preview": "test_dashboard_preview.py",
    "dashboard.validateContext": "test_dashboards.py",
    "device.removeData": "test_remove_data.py",
    "devices.payloadCounts": "test_remove_data.py",
    "devices.removeData": "test_remove_data.py",
    "experienceEndpoints.stats": "test_experience_whole.py",
    "flowRuns.get": "test_flow_runs.py",
    "flowRuns.replay": "test_flow_runs.py",
    "notebook.logs": "test_notebooks.py",
    "notebook.notebookMinuteCounts": "test_notebooks.py",
    "resourceJob.logs": "test_notebooks.py",
}
"""What changes data, or takes more than the range, and the test in which it is called."""


def route_of(operation: str) -> Route:
    (found,) = (route for route in TABLE.routes if route.operation == operation)
    return found


def path_of(operation: str, device: str, org: str = "") -> tuple[str, str]:
    application = id_of(device.rpartition("/devices/")[0])
    path = route_of(operation).path.format(applicationId=application, deviceId=id_of(device), orgId=org)
    return route_of(operation).method, path


async def reported(server: Server) -> str:
    """A device with a state, a command and a connection at `AT_MS`, and again a minute later."""
    device = await server.device(await server.application())
    for at in (AT_MS, AT_MS + 60_000):
        await server.call("POST", f"{device}/state", {"data": {"temp": at % 7}, "time": at})
        await server.call("POST", f"{device}/command", {"name": "go", "time": at})
        body = {"status": "connected", "connectedAt": at}
        await server.call("POST", f"{device}/setConnectionStatus", body)
    return device


def test_every_query_that_takes_a_time_is_in_these_tests() -> None:
    found = set()
    for route in TABLE.routes:
        for kind in (route.query, route.body):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                hints = get_type_hints(kind, include_extras=True)
                for name in NAMES & hints.keys():
                    assert QueryTime in (hints[name], *get_args(hints[name])), (route.operation, name)
                    found.add(route.operation)
    assert found == {*HISTORIES, *RANGES, *RUNS, *BODIES, *EXPORTS, *ELSEWHERE}


@pytest.mark.parametrize("operation", [*HISTORIES, *RANGES])
async def test_a_query_string_takes_iso_text(server: Server, operation: str) -> None:
    device = await reported(server)
    org = await server.call("POST", "/orgs", {"name": "farm"})
    method, path = path_of(operation, device, org["id"])
    limit = "&limit=10" if operation in HISTORIES else ""
    by_number = await server.call(method, f"{path}?start={AT_MS + 1}&end={AT_MS + 90_000}{limit}")
    for start, end in (
        ("2025-11-21T00:00:00.001Z", "2025-11-21T00:01:30Z"),
        ("2025-11-21T01:00:00.001%2B01:00", "2025-11-21 00:01:30"),
        (f"{AT_MS}.7", f"{AT_MS + 90_000}.2"),
    ):
        given = await server.call(method, f"{path}?start={start}&end={end}{limit}", status=200)
        assert given == by_number, (start, end)
    if operation in HISTORIES:
        since = await server.call(method, f"{path}?since={AT_ISO}&limit=10", status=200)
        assert since == await server.call(method, f"{path}?since={AT_MS}&limit=10")
    refused = await server.call(method, f"{path}?end=2025-11-21T00:00:00+01:00", status=400)
    assert refused["message"].startswith(
        "end: '2025-11-21T00:00:00 01:00' is not a time; give an ISO 8601 text"
    )
    assert "%2B" in refused["message"]


@pytest.mark.parametrize("operation", BODIES)
async def test_a_body_takes_iso_text(server: Server, operation: str) -> None:
    device = await reported(server)
    method, path = path_of(operation, device)
    start: Json = {"start": AT_MS} if operation == "data.timeSeriesQuery" else {}
    by_number = await server.call(method, path, {**start, "end": AT_MS + 1000})
    assert "2025-11-21T00:00:00.000Z" in str(by_number)
    assert "2025-11-21T00:01:00.000Z" not in str(by_number)
    for first, end in ((AT_ISO, "2025-11-21T00:00:01Z"), (AT_MS + 0.25, AT_MS + 1000.25)):
        given = start and {"start": first}
        assert await server.call(method, path, {**given, "end": end}, status=200) == by_number
    refused = await server.call(method, path, {"end": "soon"}, status=400)
    assert refused["message"].startswith("end: 'soon' is not a time; give an ISO 8601 text")


@pytest.mark.parametrize("operation", EXPORTS)
async def test_an_export_takes_iso_text(server: Server, operation: str) -> None:
    device = await reported(server)
    method, path = path_of(operation, device)
    calls: list[tuple[str, Json]] = [("", {"start": AT_ISO, "end": "2025-11-21T00:00:01Z"})]
    if operation == "device.export":
        calls.append((f"?start={AT_ISO}&end={AT_MS + 1000}.4", {}))
    for query, body in calls:
        queued = await server.call(method, path + query, body, status=202)
        log = await ended(server, device.rpartition("/devices/")[0], queued["jobId"])
        assert (log["input"]["start"], log["input"]["end"]) == (AT_MS, AT_MS + 1000)
        assert log["output"]["rows"] == 1


async def test_a_duration_takes_decimals(server: Server) -> None:
    device = await reported(server)
    states: list[Any] = await server.call(
        "GET", f"{device}/state?end={AT_MS}&duration=0.5&limit=5", status=200
    )
    assert [state["time"] for state in states] == ["2025-11-21T00:00:00.000Z"]
    refused = await server.call("GET", f"{device}/state?duration=-1", status=400)
    assert re.match(r"duration: ", refused["message"])
