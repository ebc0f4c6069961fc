"""States of devices trigger workflows: by id and by tag, with the filters of the trigger."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest

from tests.actors.engine.flow_cases import node
from tests.actors.engine.run_house import BY, create_flow, kept_runs, runs_end, trigger, waiting_triggers
from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.core.records.placement import home_of_actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, TooManyRequests
from trunkline.actors.core.values.origin import HOPS_MAX, Origin
from trunkline.actors.fleet.devices.record.messages import DevicePatch, PatchDevice, SendState, StateOrStates
from trunkline.actors.workflows.flows.bodies import FlowPatch, FlowVersionPost
from trunkline.actors.workflows.flows.messages import CreateFlowVersion, PatchFlow, VersionCreation
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.intake import Cause, record_for
from trunkline.actors.workflows.triggers.queue import Queued, TriggerQueue
from trunkline.limits.table import Limits, Rate
from trunkline.store import keys

SHOW = [node("d", "DebugNode")]


async def watch(house: House, type: str, key: str, **config: Any) -> Ref:
    """A workflow that shows what it is told."""
    return await create_flow(house, [trigger(type, ["d"], key, config=config)], SHOW)


async def told(house: House, flow: Ref) -> list[Any]:
    """The payloads of the runs of a workflow, in their order."""
    await runs_end(house)
    return [run.debug[0][3] for run in kept_runs(house, flow)]


async def data_told(house: House, flow: Ref) -> list[Any]:
    return [payload["data"] for payload in await told(house, flow)]


async def test_a_state_is_told_with_its_device(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device(tags=[{"key": "floor", "value": "2"}, {"key": "floor", "value": "3"}])
        flow = await watch(house, "deviceId", device.hex())
        body = {"data": {"a": "5"}, "time": START_MS - 2_000, "meta": {"from": "gateway"}}
        await house.ask(
            device,
            SendState(body=msgspec.convert(body, StateOrStates), origin=Origin("ab" * 12, "user")),
        )
        (payload,) = await told(house, flow)
        assert payload["data"] == {"a": 5}
        assert payload["time"] == at(-2_000)
        assert payload["meta"] == {"from": "gateway"}
        assert (payload["triggerId"], payload["triggerType"]) == (device.hex(), "deviceId")
        assert (payload["deviceName"], payload["deviceTags"]) == ("pump", {"floor": ["2", "3"]})
        told_device = payload["device"]
        assert told_device["id"] == device.hex()
        assert told_device["tags"] == {"floor": ["2", "3"]}
        assert told_device["attributes"]["a"] == {"dataType": "number"}
        assert (payload["relayId"], payload["relayType"]) == ("ab" * 12, "user")
        assert not {"original", "flowVersion"} & payload.keys()
        assert waiting_triggers(house) == []


async def test_a_run_is_told_the_newest_name(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device, other = await house.device(), await house.device()
        flow = await watch(house, "deviceId", device.hex())
        for name in ("pump", "valve", "valve"):
            await house.ask(device, PatchDevice(body=msgspec.convert({"name": name}, DevicePatch)))
            await house.report(device, {"data": {"a": 1}})
            await runs_end(house)
            await house.ask(other, PatchDevice(body=msgspec.convert({"name": name}, DevicePatch)))
        assert [payload["deviceName"] for payload in await told(house, flow)] == ["pump", "valve", "valve"]


async def test_tags_select_devices_by_key_by_value_and_by_both(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        tags = [{"key": "floor", "value": "2"}, {"key": "floor", "value": "3"}]
        device = await house.device(tags=tags)
        other = await house.device(tags=[{"key": "room", "value": "2"}])
        keys = {"floor/2": [1], "floor/": [1], "/2": [1, 2], "floor/9": [], "room": [], "/": []}
        flows = {key: await watch(house, "deviceTag", key) for key in keys}
        await house.report(device, {"data": {"a": 1}})
        await runs_end(house)  # runs for two devices have no order
        await house.report(other, {"data": {"a": 2}})
        for key, values in keys.items():
            assert await data_told(house, flows[key]) == [{"a": value} for value in values], key
        (payload, _) = await told(house, flows["/2"])
        assert (payload["triggerId"], payload["triggerType"]) == (device.hex(), "deviceTag")


async def test_changed_tags_and_changed_workflows_count_at_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "deviceTag", "floor/2")
        await house.report(device, {"data": {"a": 1}})
        tags: Any = [{"key": "floor", "value": "2"}]
        await house.ask(device, PatchDevice(body=msgspec.convert({"tags": tags}, DevicePatch)))
        await house.report(device, {"data": {"a": 2}})
        await runs_end(house)
        await house.system.ask(flow, PatchFlow(body=FlowPatch(enabled=False), by=BY))
        await house.report(device, {"data": {"a": 3}})
        await house.system.ask(flow, PatchFlow(body=FlowPatch(enabled=True), by=BY))
        await house.report(device, {"data": {"a": 4}})
        assert await data_told(house, flow) == [{"a": 2}, {"a": 4}]


async def test_one_trigger_of_an_editor_is_triggered_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device(tags=[{"key": "floor", "value": "2"}])
        parts = [("deviceId", device.hex().upper()), ("deviceTag", "floor/2"), ("deviceTag", "floor/")]
        flow = await create_flow(
            house, [trigger(type, ["d"], key, meta={"uiId": "u"}) for type, key in parts], SHOW
        )
        await house.report(device, {"data": {"a": 1}})
        assert await data_told(house, flow) == [{"a": 1}]


async def test_attributes_and_age_are_filtered(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        wanted = await watch(house, "deviceId", device.hex(), attributeWhitelist=["a", "label"])
        unwanted = await watch(house, "deviceId", device.hex(), attributeBlacklist=["a", "label"])
        young = await watch(house, "deviceId", device.hex(), maxAge=5)
        free = await watch(
            house, "deviceId", device.hex(), attributeWhitelist=[], attributeBlacklist=[], maxAge=0
        )
        reports: list[dict[str, Any]] = [
            {"data": {"a": 1}, "time": START_MS - 5_000},
            {"data": {"b": 2}, "time": START_MS - 5_001},
            {"data": {"a": 3, "b": 3}},
        ]
        for report in reports:
            await house.report(device, report)
        assert await data_told(house, wanted) == [{"a": 1}, {"a": 3, "b": 3}]
        assert await data_told(house, unwanted) == [{"b": 2}, {"a": 3, "b": 3}]
        assert await data_told(house, young) == [{"a": 1}, {"a": 3, "b": 3}]
        assert await data_told(house, free) == [report["data"] for report in reports]


async def test_batches_are_told_each_or_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flows = {
            wanted: await watch(house, "deviceId", device.hex(), triggerOn=wanted)
            for wanted in ("both", "individual", "batch")
        }
        once = await watch(
            house, "deviceId", device.hex(), batchBehavior="once", attributeWhitelist=["b"], maxAge=1
        )
        await house.report(device, {"data": {"a": 1}})
        await house.report(
            device,
            {"data": {"a": 2}, "time": START_MS - 9_000, "meta": 7},
            {"data": {"a": 3}, "time": START_MS - 8_000},
        )
        assert await data_told(house, flows["both"]) == [{"a": 1}, {"a": 2}, {"a": 3}]
        assert await data_told(house, flows["individual"]) == [{"a": 1}]
        (first, second) = await told(house, flows["batch"])
        assert (first["time"], first["meta"], second["time"]) == (at(-9_000), 7, at(-8_000))
        (payload,) = await told(house, once)
        assert payload["data"] == [
            {"data": {"a": 2}, "time": at(-9_000), "meta": 7},
            {"data": {"a": 3}, "time": at(-8_000)},
        ]
        assert payload["time"] == at(0)


async def test_a_state_names_the_version_that_is_run(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "deviceId", device.hex())
        version: Any = {
            "version": "v1",
            "triggers": [
                trigger(
                    "deviceId",
                    ["d"],
                    device.hex(),
                    config={"attributeWhitelist": ["b"], "allowInvalid": True},
                )
            ],
            "nodes": SHOW,
        }
        body = msgspec.convert(version, FlowVersionPost)
        await house.system.ask(flow, CreateFlowVersion(body=body, query=VersionCreation(), by=BY))
        await house.report(
            device,
            {"data": {"a": 1}},
            {"data": {"b": 2}, "flowVersion": "v1"},
            {"data": {"a": 3}, "flowVersion": "v1"},
            {"data": {"a": 4}, "flowVersion": "gone"},
        )
        await house.report(device, {"data": {"b": 5}, "flowVersion": "v1"})
        with pytest.raises(Invalid):
            await house.report(device, {"data": {"b": "x"}, "flowVersion": "v1"})
        payloads = await told(house, flow)
        assert [(each["data"], each.get("flowVersion")) for each in payloads] == [
            ({"a": 1}, None),
            ({"b": 2}, "v1"),
            ({"b": 5}, "v1"),
            (None, "v1"),
        ]
        assert len(await house.states(device)) > 0


async def test_a_refused_state_is_told_only_to_who_wants_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        plain = await watch(house, "deviceId", device.hex())
        flow = await watch(house, "deviceId", device.hex(), allowInvalid=True, attributeWhitelist=["b"])
        with pytest.raises(Invalid):
            await house.report(device, {"data": {"a": "x"}, "meta": 1})
        with pytest.raises(Invalid):
            await house.report(device, {"data": {"a": 1}}, {"data": {"no": 2}})
        single, batch = await told(house, flow)
        assert single["data"] is None
        assert single["original"] == {"data": {"a": "x"}, "meta": 1}
        assert batch["original"] == [{"data": {"a": 1}}, {"data": {"no": 2}}]
        assert single["deviceName"] == "pump"
        assert await told(house, plain) == []
        assert await house.states(device) == []


async def test_what_json_cannot_say_of_a_refused_state_is_told_as_null(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "deviceId", device.hex(), allowInvalid=True)
        tag, undefined = cbor2.CBORTag(64, b"1"), cbor2.undefined
        with pytest.raises(Invalid, match=r"^meta\.c: is not a finite number"):
            await house.report(device, {"data": {"a": 1}, "meta": {"b": [1, tag], "c": math.inf}})
        with pytest.raises(Invalid, match=r"^data\.a: undefined is not a number"):
            await house.report(device, {"data": {"a": undefined}})
        assert [payload["original"] for payload in await told(house, flow)] == [
            {"data": {"a": 1}, "meta": {"b": [1, None], "c": None}},
            {"data": {"a": None}},
        ]


async def test_a_trigger_that_is_stored_with_what_json_cannot_say_is_run(tmp_path: Path) -> None:
    """Earlier versions stored such `meta`."""
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "deviceId", device.hex())
        (watcher,) = house.system.component(FlowIndex).of(house.application).get("deviceId", device.hex())
        more = {"meta": {"a": math.nan, "b": {None: 1}, "c": 2}}
        cause = Cause(device.hex(), {"a": 1}, START_MS, more, device=device)
        queue = house.system.component(TriggerQueue)
        number = queue.next_number()
        home = home_of_actor(house.ref(device))
        assert home.id is not None
        key = keys.trigger_key(number, home.place, home.id)
        raw = record_for(house.application, watcher, cause).encoded()
        queue.add([Queued(number, key, house.application, flow.id, device.hex(), raw)])
        (payload,) = await told(house, flow)
        assert payload["meta"] == {"a": None, "b": {}, "c": 2}


async def test_a_throttled_state_triggers_nothing(tmp_path: Path) -> None:
    limits = dataclasses.replace(Limits.off(), send_state=Rate(2, 15))
    async with running_house(tmp_path / "d", limits=limits) as house:
        device = await house.device()
        flow = await watch(house, "deviceId", device.hex(), allowInvalid=True)
        await house.report(device, {"data": {"a": 1}})
        with pytest.raises(Invalid):
            await house.report(device, {"data": {"a": "x"}})
        with pytest.raises(TooManyRequests):
            await house.report(device, {"data": {"a": 2}})
        with pytest.raises(TooManyRequests):
            await house.report(device, {"data": {"a": "x"}})
        assert await data_told(house, flow) == [{"a": 1}, None]


async def test_a_chain_of_states_ends(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        device = await house.device()
        flow = await watch(house, "deviceId", device.hex(), allowInvalid=True)
        for body in ({"data": {"a": 1}}, {"data": {"a": "x"}}):
            origin = Origin(flow.id.hex(), "flow", HOPS_MAX)
            message = SendState(body=msgspec.convert(body, StateOrStates), origin=origin)
            with contextlib.suppress(Invalid):
                await house.ask(device, message)
        assert await told(house, flow) == []
