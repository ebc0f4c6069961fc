"""Limits of the table that an operator changes hold for the calls that they bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.e2e.device_calls import id_of

StartServer = Callable[..., Any]
CHANGED = {
    "selected_devices_max": 2,
    "names_max": 2,
    "device_counts_days_max": 3,
    "time_series_values_max": 4,
}


async def test_what_one_call_selects_finds_and_counts(start_server: StartServer) -> None:
    async with start_server(limits=CHANGED) as server:
        application = await server.application()
        devices = [await server.device(application, f"d{number}") for number in range(2)]
        command = {"name": "x", "deviceQuery": {}}
        await server.call("POST", f"{application}/devices/command", command)
        devices.append(await server.device(application, "d2"))
        refused = await server.call("POST", f"{application}/devices/command", command, status=413)
        assert refused["message"].startswith("More than 2 devices are selected")

        found = await server.call("GET", f"{application}/devices/deviceNames")
        assert [each["name"] for each in found["deviceSummary"]] == ["d0", "d1"]
        found = await server.call("GET", f"{application}/devices/attributeNames")
        assert found["attributeNames"] == ["label", "on"]

        day_ms = 86_400_000
        await server.call("GET", f"{application}/deviceCounts?start={-2 * day_ms}")
        refused = await server.call("GET", f"{application}/deviceCounts?start={-3 * day_ms}", status=400)
        assert "more than 3 days" in refused["message"]

        states = [{"data": {"temp": number}, "time": 1_700_000_000 + number} for number in range(5)]
        query = {"start": 1_699_999_999_000, "end": 1_700_000_010_000, "deviceIds": [id_of(devices[0])]}
        for batch, status in ((states[:4], 200), (states[4:], 413)):
            await server.call("POST", f"{devices[0]}/state", batch)
            await server.call("POST", f"{application}/data/time-series-query", query, status=status)
