"""Units, thresholds, sparklines and timelines of blocks: in the answer to a client, and in a report."""

from __future__ import annotations

from tests.e2e.conftest import Json, Server
from tests.e2e.test_dashboard_data import made, parts
from tests.e2e.test_reports import block, job_of, mails, pictures, send, words

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
HOT = [
    {"label": "OK"},
    {"value": 50, "color": "orange", "label": "Warm"},
    {"value": 80, "color": "red", "label": "Hot"},
]
ATTRIBUTES = [{"name": "load", "dataType": "number"}, {"name": "mode", "dataType": "string"}]
WORDS = {"attribute": "mode"}


async def boiler(server: Server) -> tuple[str, str]:
    """An application with a device that reported its load and its mode for six minutes; its path and the device."""
    application = await server.application("boiler house")
    device = await server.device(application, "boiler", attributes=ATTRIBUTES)
    values = [(20, "idle"), (55, "on"), (60, "on"), (90, "fault"), (90, "fault"), (70, "on")]
    states = [
        {"time": START_MS + at * MINUTE_MS, "data": {"load": load, "mode": mode}}
        for at, (load, mode) in enumerate(values)
    ]
    await server.call("POST", f"{device}/state", states)
    return application, device.rpartition("/")[2]


def blocks_of(device: str) -> list[Json]:
    load = {"attribute": "load", "deviceIds": [device]}
    numbers = {"unit": "%", "thresholds": HOT, "duration": 10 * MINUTE_MS, "resolution": MINUTE_MS}
    timeline = {"displayType": "timeline", "duration": 10 * MINUTE_MS}
    return [
        block(
            0,
            "gauge",
            "Dial",
            {"segment": load, "gaugeMin": 0, "gaugeMax": 100, "unit": "%", "thresholds": HOT},
        ),
        block(
            2, "bar", "Bars", {"segments": [load, {**load, "label": "again"}], "unit": "%", "thresholds": HOT}
        ),
        block(4, "graph", "Course", {**numbers, "segments": [load]}),
        block(6, "graph", "Spark", {**numbers, "segments": [load], "displayType": "sparkline"}),
        block(8, "graph", "Modes", {**timeline, "segments": [WORDS]}),
        block(10, "graph", "Levels", {**timeline, "segments": [load], "thresholds": HOT}),
    ]


async def test_numbers_have_units_and_thresholds_and_states_a_timeline(server: Server) -> None:
    application, device = await boiler(server)
    end = START_MS + 5 * MINUTE_MS
    path = await made(server, application, blocks_of(device))
    found = await parts(server, path, {"end": end})
    dial, status, value = found["Dial"]
    assert status == {"kind": "status", "text": "Warm", "color": "orange"}
    assert (value["value"], value["unit"]) == (70, "%")
    assert dial["lines"][0]["color"] == "orange"
    assert [(mark["label"], mark["points"], mark["color"]) for mark in dial["marks"]] == [
        ("Warm", [[0.0, 50.0]], "orange"), ("Hot", [[0.0, 80.0]], "red"),
    ]  # fmt: skip
    bars = found["Bars"][0]
    # A bar of a percentage ends at 100, and says in words what its colour means.
    assert (bars["low"], bars["high"]) == (0, 100)
    assert bars["categories"] == ["load: Warm", "again: Warm"]
    assert {line["color"] for line in bars["lines"]} == {"orange"}
    (course,) = found["Course"]
    assert [mark["label"] for mark in course["marks"]] == ["Warm", "Hot"]
    spark_status, newest, spark = found["Spark"]
    assert (spark_status["text"], newest["value"], newest["unit"]) == ("Warm", 70, "%")
    assert (spark["type"], len(spark["lines"][0]["points"])) == ("graph", 6)
    modes, changes = found["Modes"]
    assert (modes["type"], modes["categories"]) == ("timeline", ["idle", "on", "fault"])
    assert modes["span"] == [end - 10 * MINUTE_MS, end]
    # Only changes are points: idle, on, fault, on.
    assert [(ms - START_MS, category) for ms, category in modes["lines"][0]["points"]] == [
        (0, 0), (MINUTE_MS, 1), (3 * MINUTE_MS, 2), (5 * MINUTE_MS, 1),
    ]  # fmt: skip
    assert [row[1] for row in changes["rows"]] == ["on", "fault", "on", "idle"]
    levels = found["Levels"][0]
    assert levels["categories"] == ["OK", "Warm", "Hot"]
    assert [category for _, category in levels["lines"][0]["points"]] == [0, 1, 2, 1]


async def test_a_report_has_units_and_draws_timelines(server: Server) -> None:
    application, device = await boiler(server)
    path = await made(server, application, blocks_of(device))
    answer = await send(server, path, time=START_MS + 5 * MINUTE_MS)
    log = await job_of(server, application, answer)
    assert (log["status"], log["output"]["pictures"]) == ("completed", 6)
    (mail,) = await mails(server)
    assert len(pictures(mail)) == 6
    assert "Warm load: 70 %" in words(mail)
    assert "mode fault" in words(mail)


async def test_a_timeline_has_few_categories(server: Server) -> None:
    application = await server.application("many")
    device = await server.device(application, "d", attributes=ATTRIBUTES)
    states = [{"time": START_MS + at, "data": {"mode": f"m{at}"}} for at in range(40)]
    await server.call("POST", f"{device}/state", states)
    config = {"displayType": "timeline", "duration": MINUTE_MS, "segments": [WORDS]}
    path = await made(server, application, [block(0, "graph", "Modes", config)])
    chart = (await parts(server, path, {"end": START_MS + 100}))["Modes"][0]
    assert (len(chart["categories"]), chart["categories"][-1]) == (25, "other values")
    assert chart["lines"][0]["points"][-1][1] == 24


async def test_a_count_names_the_moment_that_it_shows(server: Server) -> None:
    application, _ = await boiler(server)
    await server.device(application, "spare", attributes=ATTRIBUTES)
    silent = '{"expectedBy": {"$lt": "{{dashboard.time}}"}}'
    due = '{"expectedBy": {"$gte": "{{dashboard.time}}"}}'
    segments = [{"id": "silent", "query": silent}, {"id": "due", "query": due}]
    columns = {"columns": [{"type": "name"}, {"type": "connectionStatus"}]}
    blocks = [
        block(0, "device-count", "Health", {"segments": segments}),
        block(2, "device-list", "Devices", columns),
    ]
    path = await made(server, application, blocks)
    found = await parts(server, path)
    assert [each["value"] for each in found["Health"]] == [0, 1]
    # A device that reports without a connection is said to report.
    assert found["Devices"][0]["rows"] == [["boiler", "reporting"], ["spare", "never seen"]]


async def test_means_and_shares_of_the_largest_numbers_are_numbers(server: Server) -> None:
    """Their sum is beyond all numbers."""
    application = await server.application("large")
    device = await server.device(application, "d", attributes=ATTRIBUTES)
    states = [{"time": START_MS + at, "data": {"load": 1.5e308}} for at in range(3)]
    await server.call("POST", f"{device}/state", states)
    load = {"attribute": "load"}
    blocks = [
        block(0, "graph", "Course", {"segments": [load], "duration": MINUTE_MS}),
        block(2, "pie", "Shares", {"segments": [load, load]}),
    ]
    path = await made(server, application, blocks)
    _, table = (await parts(server, path, {"end": START_MS + 100}))["Shares"]
    assert [row[2] for row in table["rows"]] == [{"kind": "share", "share": 0.5}] * 2
    log = await job_of(server, application, await send(server, path, time=START_MS + 100))
    assert log["status"] == "completed", log
    (mail,) = await mails(server)
    assert "load 3 1.5E308 1.5E308 1.5E308 1.5E308" in words(mail)
