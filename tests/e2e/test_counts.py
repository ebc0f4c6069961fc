"""Counts over HTTP: devices per day and payloads per hour, while an injected clock crosses hours and days."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.house import START_MS, ManualClock, at
from tests.e2e.conftest import Server

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MIDNIGHT = -12 * HOUR_MS
"""The start of the clock's day, seen from the clock's start."""

LOOSE = {"send_state": "off", "send_command": "off", "set_connection_status": "off"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(start_server: Any, clock: ManualClock) -> Any:
    async with start_server(clock=clock, limits=LOOSE, token_ttl_s=365 * 86_400) as running:
        yield running


def this(day: int) -> str:
    """The beginning of a day, counted from that of the clock's start."""
    return at(MIDNIGHT + day * DAY_MS)


async def days(server: Server, path: str, query: str = "") -> list[tuple[str, int, int, int]]:
    found = await server.call("GET", f"{path}/deviceCounts?{query}")
    return [(each["date"], each["created"], each["deleted"], each["total"]) for each in found["counts"]]


async def test_devices_per_day(server: Server, clock: ManualClock) -> None:
    application, other = await server.application(), await server.application("shed")
    first = [await server.device(application) for _ in range(3)]
    await server.device(other)
    clock.set_wall(START_MS - MIDNIGHT - 1)
    await server.call("DELETE", first[0])
    clock.set_wall(START_MS - MIDNIGHT)
    second = await server.device(application)
    clock.set_wall(START_MS + 2 * DAY_MS)
    await server.call("DELETE", first[1])
    await server.call("DELETE", second)
    expected = [(this(0), 3, 1, 2), (this(1), 1, 0, 3), (this(2), 0, 2, 1)]
    assert await days(server, application, "start=-172800000") == expected
    assert (await days(server, application))[-3:] == expected
    assert len(await days(server, application)) == 31
    assert all(counts[1:] == (0, 0, 0) for counts in (await days(server, application))[:-3])
    past = f"start={START_MS}&end={START_MS + DAY_MS}"
    assert await days(server, application, past) == expected[:2]
    assert await days(server, application, f"start={START_MS}&end={START_MS}") == expected[:1]
    assert await days(server, application, f"start={START_MS}&end={START_MS - DAY_MS}") == []
    clock.pass_s(30 * 86_400)
    assert (await days(server, application))[-1] == (this(32), 0, 0, 1)
    assert (await days(server, application, "start=-1"))[0][3] == 1
    mine = await days(server, "/me", f"start={START_MS}&end={START_MS + 2 * DAY_MS}")
    assert mine == [(this(0), 4, 1, 3), (this(1), 1, 0, 4), (this(2), 0, 2, 2)]
    whole = await server.call("GET", f"{application}/deviceCounts?{past}")
    assert (whole["start"], whole["end"]) == (at(0), at(DAY_MS))


async def test_a_range_of_days_is_bounded(server: Server) -> None:
    application = await server.application()
    for path in (application, "/me"):
        assert len(await days(server, path, f"start={-365 * DAY_MS}")) == 366
        for query, sentence in (
            (f"start={-366 * DAY_MS}", "start: the range covers more than 366 days"),
            ("start=1", "start: the range covers more than 366 days"),
            ("start=x", "start: "),
            (f"end={10**30}", "end: "),
            ("colour=red", "colour: "),
        ):
            refused = await server.call("GET", f"{path}/deviceCounts?{query}", status=400)
            assert refused["message"].startswith(sentence), refused["message"]


async def payloads(server: Server, path: str, query: str = "") -> dict[str, Any]:
    """The payload counts that are not zero."""
    found = await server.call("GET", f"{path}/payloadCounts?{query}")
    return {name: count for name, count in found.items() if count}


async def work(server: Server, device: str, states: int, commands: int) -> None:
    if states:
        await server.call(
            "POST", f"{device}/state", [{"data": {"temp": n}, "time": 1000 + n} for n in range(states)]
        )
    for _ in range(commands):
        await server.call("POST", f"{device}/command", {"name": "go"})


async def test_payloads_per_hour(server: Server, clock: ManualClock) -> None:
    """A state counts in the hour in which it came, whatever its time; so does everything else."""
    application = await server.application()
    device, other = await server.device(application), await server.device(application)
    await work(server, device, 3, 1)
    await work(server, other, 1, 0)
    clock.set_wall(START_MS + HOUR_MS - 1)
    await work(server, device, 2, 0)
    clock.set_wall(START_MS + HOUR_MS)
    await work(server, device, 10, 2)
    await server.call("POST", f"{device}/setConnectionStatus", {"status": "connected"})
    clock.set_wall(START_MS + 5 * HOUR_MS)
    await server.call("POST", f"{device}/setConnectionStatus", {"status": "disconnected"})
    await work(server, device, 100, 0)
    first = f"start={START_MS}&end={START_MS + 1}"
    second = f"start={START_MS + HOUR_MS}&end={START_MS + 2 * HOUR_MS - 1}"
    assert await payloads(server, device, first) == {"deviceState": 5, "deviceCommand": 1}
    assert await payloads(server, device, second) == {
        "deviceState": 10,
        "deviceCommand": 2,
        "deviceConnect": 1,
    }
    total = {"deviceState": 115, "deviceCommand": 3, "deviceConnect": 1, "deviceDisconnect": 1}
    assert await payloads(server, device) == total
    assert await payloads(server, device, "start=-1") == {"deviceState": 100, "deviceDisconnect": 1}
    assert await payloads(server, device, f"start={START_MS - HOUR_MS}&end={START_MS - 1}") == {}
    assert await payloads(server, other) == {"deviceState": 1}
    of_application = {name: {"total": count} for name, count in total.items()}
    of_application |= {"deviceState": {"total": 116}, "deviceCreate": {"total": 2}}
    assert await payloads(server, application) == of_application
    assert await payloads(server, application, second) == {
        "deviceState": {"total": 10},
        "deviceCommand": {"total": 2},
        "deviceConnect": {"total": 1},
    }
    clock.pass_s(31 * 86_400)
    assert await payloads(server, device) == {}
    assert await payloads(server, application) == {}
    assert await payloads(server, device, "start=1") == total


async def periods(server: Server, path: str, query: str) -> list[tuple[str, int]]:
    found = await server.call("GET", f"{path}/payloadCountsBreakdown?{query}")
    return [(each["date"], each["value"]) for each in found["counts"]]


async def test_payloads_per_hour_and_per_day(server: Server, clock: ManualClock) -> None:
    application, shed = await server.application("farm"), await server.application("shed")
    device, other = await server.device(application), await server.device(shed)
    await work(server, device, 3, 1)
    clock.set_wall(START_MS + 2 * HOUR_MS)
    await work(server, device, 10, 0)
    clock.set_wall(START_MS + DAY_MS)
    await work(server, device, 100, 0)
    await work(server, other, 7, 0)
    hours = f"start={START_MS}&end={START_MS + 3 * HOUR_MS}&resolution={HOUR_MS}"
    expected = [(at(0), 4), (at(HOUR_MS), 0), (at(2 * HOUR_MS), 10), (at(3 * HOUR_MS), 0)]
    for path in (device, application):
        assert await periods(server, path, hours) == expected
        assert (await periods(server, path, ""))[-3:] == [(this(-1), 0), (this(0), 14), (this(1), 100)]
        assert len(await periods(server, path, "")) == 31
        assert await periods(server, path, f"start={START_MS}&end={START_MS - 3 * DAY_MS}") == []
        assert len(await periods(server, path, f"start={-365 * DAY_MS}&resolution={HOUR_MS}")) == 365 * 24 + 1
        for query, sentence in (
            (f"start={-366 * DAY_MS}", "start: the range covers more than 366 days"),
            ("start=x", "start: "),
            ("resolution=60000", "resolution: "),
        ):
            refused = await server.call("GET", f"{path}/payloadCountsBreakdown?{query}", status=400)
            assert refused["message"].startswith(sentence), refused["message"]
    # The creation of the device is no message of a device.
    assert (await periods(server, application, f"{hours}&includeNonBillable=true"))[0] == (at(0), 5)
    refused = await server.call("GET", f"{application}/payloadCountsBreakdown?asBytes=true", status=400)
    assert refused["message"].startswith("asBytes: ")

    days = f"start={START_MS}&end={START_MS + DAY_MS}"
    sums = [
        each["value"] for each in (await server.call("GET", f"/me/payloadCountsBreakdown?{days}"))["counts"]
    ]
    assert sums == [14, 107]
    assert (await payloads(server, "/me"))["deviceState"] == {"total": 120}
    minutes = (await server.call("GET", f"/me/notebookMinuteCounts?{days}"))["counts"]
    assert [day["minutes"] for day in minutes] == [0, 0]
    found = await server.call("GET", f"/applications/periodSummaries?{days}")
    assert (found["count"], [each["name"] for each in found["items"]]) == (2, ["farm", "shed"])
    for path, each in zip((application, shed), found["items"], strict=True):
        assert path == f"/applications/{each['id']}"
        summary = each["summary"]
        assert summary["deviceCounts"] == await server.call("GET", f"{path}/deviceCounts?{days}")
        assert summary["payloadCounts"] == await server.call("GET", f"{path}/payloadCountsBreakdown?{days}")
        assert [day["minutes"] for day in summary["notebookMinuteCounts"]["counts"]] == [0, 0]
        assert summary["notebookMinuteCounts"] == await server.call(
            "GET", f"{path}/notebookMinuteCounts?{days}"
        )
    query = f"{days}&include=payloadCounts&includeNonBillable=true&filterField=name&filter=s*"
    (only,) = (await server.call("GET", f"/applications/periodSummaries?{query}"))["items"]
    payload_counts = {"start": at(0), "end": at(DAY_MS), "counts": [{"date": this(0), "value": 1}]}
    payload_counts["counts"].append({"date": this(1), "value": 7})  # type: ignore[attr-defined]
    assert only["summary"] == {"payloadCounts": payload_counts}
    left = await server.call("GET", "/applications/periodSummaries?exclude=payloadCounts,deviceCounts")
    assert [set(each["summary"]) for each in left["items"]] == [{"notebookMinuteCounts"}] * 2
    for query, field in (("include=devices", "include"), ("asBytes=true", "asBytes"), ("start=1", "start")):
        refused = await server.call("GET", f"/applications/periodSummaries?{query}", status=400)
        assert refused["message"].startswith(f"{field}: "), refused["message"]


async def test_counts_stay_right_when_the_clock_is_set_back_and_after_a_restart(
    start_server: Any, clock: ManualClock
) -> None:
    async with start_server(clock=clock, limits=LOOSE) as server:
        application = await server.application()
        device = await server.device(application)
        for hour in (0, 1, 0, 2, 1, 0):
            clock.set_wall(START_MS + hour * HOUR_MS)
            await work(server, device, 10 ** (2 - hour), 1)
        server.system._mailboxes.clear()
        await work(server, device, 1, 0)
    async with start_server(clock=clock, limits=LOOSE) as server:
        for hour, states, commands in ((0, 301, 3), (1, 20, 2), (2, 1, 1)):
            begin = START_MS + hour * HOUR_MS
            query = f"start={begin}&end={begin}"
            expected = {"deviceState": states, "deviceCommand": commands}
            assert await payloads(server, device, query) == expected
            found = await payloads(server, application, query)
            assert {name: found[name]["total"] for name in expected} == expected


async def test_what_is_refused_is_not_counted(server: Server) -> None:
    application = await server.application()
    device = await server.device(application)
    before = await payloads(server, application)
    await server.call("POST", f"{device}/state", {"data": {"temp": "x"}}, status=400)
    await server.call("POST", f"{device}/state", [{"data": {"temp": 1}}, {"data": {}}], status=400)
    await server.call("POST", f"{device}/command", {"name": ""}, status=400)
    await server.call("POST", f"{application}/devices", {"name": "x", "gatewayId": "0" * 24}, status=400)
    assert await payloads(server, device) == {}
    assert await payloads(server, application) == before
    refused = await server.call("GET", f"{application}/payloadCounts?asBytes=true", status=400)
    assert refused["message"].startswith("asBytes: ")
    for path in (device, application):
        refused = await server.call("GET", f"{path}/payloadCounts?start=x", status=400)
        assert refused["message"].startswith("start: ")
