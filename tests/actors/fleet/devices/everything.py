"""All that can be read of the states of a device with a number `n`."""

from __future__ import annotations

import msgspec

from tests.actors.house import START_MS, House
from trunkline.actors.fleet.devices.queries.measurement_messages import QueryTimeSeries, TimeSeriesQuery


async def everything(house: House, device: bytes) -> str:
    """All that can be read of the states of a device, exact in type."""
    series = []
    for aggregation in ("NONE", "MEAN", "LAST"):
        body = TimeSeriesQuery(
            start=START_MS - 10_000,
            resolution=1000,
            aggregation=aggregation,
            attributes=["n"],
            device_ids=[device.hex()],
        )
        message = QueryTimeSeries(
            application=house.application, body=body, now_ms=house.clock.wall_ms(), reach=None
        )
        shown = msgspec.to_builtins(await house.read(message))
        series.append(shown["devices"][device.hex()]["points"])
    states = [
        (state["time"], sorted(state["data"].items()), state.get("flowVersion"), state.get("meta"))
        for state in await house.states(device)
    ]
    composite = sorted((await house.composite(device)).items())
    return repr((states, composite, await house.payloads(device), series))
