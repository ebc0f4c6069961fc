"""Connections of devices, and new devices, trigger workflows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import create_flow, kept_runs, runs_end, trigger
from tests.actors.fleet.devices.link_session import begin, committed
from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.fleet.devices.record.messages import (
    ConnectionStatus,
    CreateDevice,
    DevicePost,
    SetConnectionStatus,
)
from trunkline.actors.platform.jobs.results import Results

SHOW = [node("d", "DebugNode")]


async def set_status(house: House, device: bytes, **body: Any) -> None:
    await house.ask(device, SetConnectionStatus(body=msgspec.convert(body, ConnectionStatus)))


async def test_connections_are_told_to_who_waits_for_them(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device(tags=[{"key": "floor", "value": "2"}])
        other = await house.device()
        ends = {
            "Connect": ("deviceIdConnect", device.hex()),
            "Disconnect": ("deviceTagDisconnect", "floor/2"),
        }
        flows = {
            end: await create_flow(house, [trigger(type, ["d"], key)], SHOW)
            for end, (type, key) in ends.items()
        }
        for each in (device, other):
            await set_status(
                house, each, status="connected", connectedAt=START_MS - 9_000, ipAddress="10.0.0.9"
            )
            await set_status(
                house,
                each,
                status="disconnected",
                disconnectedAt=START_MS - 1_000,
                disconnectReason="keepalive",
                messagesFromClient=5,
                messagesToClient=2,
            )
        await runs_end(house)
        (connected,) = (run.debug[0][3] for run in kept_runs(house, flows["Connect"]))
        (ended,) = (run.debug[0][3] for run in kept_runs(house, flows["Disconnect"]))
        told = {"address": "10.0.0.9", "method": "rest", "secure": False, "connectedAt": at(-9_000)}
        assert connected["data"] == told
        assert (connected["time"], connected["triggerId"]) == (at(-9_000), device.hex())
        assert connected["deviceName"] == "pump"
        assert ended["data"] == {
            "method": "rest",
            "secure": False,
            "connectedAt": at(-9_000),
            "disconnectReason": "keepalive",
            "messagesFromDevice": 5,
            "messagesToDevice": 2,
        }
        assert (ended["time"], ended["triggerType"]) == (at(-1_000), "deviceTagDisconnect")
        assert ended["deviceTags"] == {"floor": ["2"]}


async def test_a_link_is_told_as_such_and_whether_the_server_is_reached_by_https(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        house.system.component(Results).base_url = "https://farm.example"
        device = await house.device()
        starts = [trigger(f"deviceId{what}", ["d"], device.hex()) for what in ("Connect", "Disconnect")]
        flow = await create_flow(house, starts, SHOW)
        session = begin(house, device)
        await committed(house)
        session.close("The client left.")
        await committed(house)
        await runs_end(house)
        told = [run.debug[0][3]["data"] for run in kept_runs(house, flow)]
        known = {"address": "10.0.0.9", "method": "link", "secure": True, "connectedAt": at(0)}
        assert known in told
        assert {**known, "disconnectReason": "The client left.", **COUNTS} in told


COUNTS = {"messagesFromDevice": 7, "messagesToDevice": 0}


async def test_a_new_device_is_told_unless_it_is_one_of_many(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        flow = await create_flow(house, [trigger("deviceCreate", ["d"], "/")], SHOW)
        body = msgspec.convert(
            {"name": "fan", "attributes": [{"name": "rpm", "dataType": "number"}]}, DevicePost
        )
        ids = [house.system.ids.new(START_MS) for _ in range(2)]
        for id, is_bulk in zip(ids, (False, True), strict=True):
            message = CreateDevice(body=body, origin=Origin("ab" * 12, "apiToken"), is_bulk=is_bulk)
            await house.ask(id, message)
        await runs_end(house)
        (payload,) = (run.debug[0][3] for run in kept_runs(house, flow))
        told = payload["data"]["device"]
        assert (told["id"], told["name"], told["applicationId"]) == (
            ids[0].hex(),
            "fan",
            house.application.hex(),
        )
        assert told["attributes"] == [{"name": "rpm", "dataType": "number"}]
        assert (payload["relayType"], payload["triggerType"]) == ("apiToken", "deviceCreate")
