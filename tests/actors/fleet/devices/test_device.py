"""The device actor: what it stores, in which order, who hears of it when, and that a refusal leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Crashed, Invalid, NotFound, PayloadTooLarge, TooManyRequests
from trunkline.actors.core.values.nesting import NESTING_MAX
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.actor.actor import Device
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record.terms import Attribute
from trunkline.actors.fleet.devices.state import history
from trunkline.actors.fleet.devices.state.head import TEXT_CHARS_MAX
from trunkline.limits.table import Limits

DAY_MS = 86_400_000


# -- states --------------------------------------------------------------------------------------------------


async def test_a_state_without_a_time_is_of_now(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1}})
    house.clock.pass_s(1.5)
    await house.report(device, {"data": {"a": 2}})
    assert await house.states(device) == [
        {"time": at(0), "data": {"a": 1}},
        {"time": at(1500), "data": {"a": 2}},
    ]


async def test_one_millisecond_is_one_state_and_later_reports_overwrite_what_they_send(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1, "b": 1}, "time": START_MS, "meta": {"n": 1}})
    await house.report(device, {"data": {"b": 2, "label": "x"}, "time": START_MS})
    merged = {"time": at(0), "data": {"a": 1, "b": 2, "label": "x"}, "meta": {"n": 1}}
    assert await house.states(device) == [merged]


async def test_states_of_one_millisecond_merge_within_a_call(house: House) -> None:
    device = await house.device()
    await house.report(
        device,
        {"data": {"a": 1}, "time": START_MS},
        {"data": {"b": 1}, "time": START_MS - 5},
        {"data": {"a": 2, "label": "x"}, "time": START_MS},
    )
    assert await house.states(device) == [
        {"time": at(-5), "data": {"b": 1}},
        {"time": at(0), "data": {"a": 2, "label": "x"}},
    ]
    assert await house.composite(device) == {"a": (at(0), 2), "b": (at(-5), 1), "label": (at(0), "x")}


async def test_states_of_one_millisecond_merge_between_calls_that_are_not_committed_yet(house: House) -> None:
    device = await house.device()
    statistics = house.system.journal.statistics
    commits, batches = statistics.commits, statistics.batches
    async with trio.open_nursery() as nursery:
        for data in ({"a": 1}, {"b": 2}, {"a": 3}):
            nursery.start_soon(house.report, device, {"data": data, "time": START_MS - 10})
    assert (statistics.commits - commits, statistics.batches - batches) == (1, 3), "they met in one group"
    (state,) = await house.states(device)
    assert state["data"]["b"] == 2
    assert state["data"]["a"] in (1, 3), "the order of the tasks is Trio's"
    assert await house.composite(device) == {
        "a": (at(-10), state["data"]["a"]),
        "b": (at(-10), 2),
    }


async def test_an_old_state_does_not_change_what_is_newest(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 2}, "time": START_MS})
    await house.report(device, {"data": {"a": 1, "b": 1}, "time": START_MS - 1000})
    assert await house.composite(device) == {"a": (at(0), 2), "b": (at(-1000), 1)}


@pytest.mark.parametrize(
    "bad",
    [
        {"data": {"a": 1}, "time": START_MS + DAY_MS + 1},
        {"data": {"a": 1}, "time": "yesterday"},
        {"data": {"a": "x"}},
        {"data": {"c": 1}},
        {"data": {}},
        {"data": {"label": "x" * 65_537}},
        {"data": {"a": 1}, "meta": [[[]]] * 3},
    ],
    ids=["future", "no-time", "wrong-type", "undeclared", "empty", "too-long", "too-deep"],
)
async def test_one_bad_state_of_a_call_stores_nothing_of_it(house: House, bad: dict[str, Any]) -> None:
    if "meta" in bad:
        bad["meta"] = nested(NESTING_MAX + 1)
    device = await house.device()
    await house.report(device, {"data": {"a": 0}, "time": START_MS - 10})
    before = (await house.states(device), await house.composite(device), await house.payloads(device))
    good = {"data": {"a": 1}, "time": START_MS}
    with pytest.raises(Invalid, match=r"^\[2\]\.(time|data|meta)"):
        await house.report(device, good, good, bad, good)
    assert before == (
        await house.states(device),
        await house.composite(device),
        await house.payloads(device),
    )
    await house.report(device, good)
    assert len(await house.states(device)) == 2, "the device goes on as if nothing had been"


def nested(levels: int) -> Any:
    value: Any = 1
    for number in range(levels):
        value = [value] if number % 2 else {"in": value}
    return value


async def test_a_day_ahead_is_still_taken_and_shown(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1}, "time": START_MS + DAY_MS})
    assert await house.states(device) == [{"time": at(DAY_MS), "data": {"a": 1}}]
    assert await house.composite(device) == {"a": (at(DAY_MS), 1)}
    assert await house.composite(device, end=START_MS) == {}


async def test_too_many_states_in_a_call_are_refused(tmp_path: Path) -> None:
    limits = Limits.off().override({"states_per_call_max": 3})
    async with running_house(tmp_path, limits=limits) as house:
        device = await house.device()
        state = {"data": {"a": 1}}
        await house.report(device, state, state, state)
        with pytest.raises(PayloadTooLarge, match=r"^4 states in one call; send at most 3 a call"):
            await house.report(device, *[state] * 4)


async def test_an_empty_array_is_nothing_to_store(house: House) -> None:
    device = await house.device()
    await house.report(device, as_array=True)
    assert await house.states(device) == []


async def test_meta_and_payload_come_back_as_deep_as_they_are_let_in(house: House) -> None:
    device = await house.device()
    deep = nested(NESTING_MAX)
    await house.report(device, {"data": {"a": 1}, "meta": deep, "flowVersion": "v1"})
    await house.command(device, "go", payload=deep)
    (state,), (command,) = await house.states(device), await house.commands(device)
    assert (state["meta"], state["flowVersion"]) == (deep, "v1")
    assert command["payload"] == deep
    with pytest.raises(Invalid, match=r"^meta: nests deeper than 100 levels"):
        await house.report(device, {"data": {"a": 1}, "meta": [deep]})
    with pytest.raises(Invalid, match=r"^payload: nests deeper than 100 levels"):
        await house.command(device, "go", payload=[deep])


async def test_long_texts_are_not_written_again_with_every_report(house: House) -> None:
    device = await house.device({f"t{number}": "string" for number in range(20)} | {"a": "number"})
    long = {f"t{number}": f"{number}" * 60_000 for number in range(10)}
    await house.report(device, {"data": long, "time": START_MS - 10})
    await house.report(device, {"data": {"t0": "short"}, "time": START_MS - 20})
    bytes_before = house.system.journal.statistics.bytes
    await house.report(device, {"data": {"a": 1}})
    assert house.system.journal.statistics.bytes - bytes_before < 10_000
    composite = await house.composite(device)
    assert {name: composite[name][1] for name in long} == long
    house.forget()
    await house.report(device, {"data": {"t1": "x" * TEXT_CHARS_MAX, "t2": "y" * (TEXT_CHARS_MAX + 1)}})
    composite = await house.composite(device)
    assert (composite["t1"], composite["t2"]) == ((at(1), "x" * 256), (at(1), "y" * 257))
    assert composite["t3"] == (at(-10), long["t3"])


async def test_no_answer_is_larger_than_its_bound(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is much to decode is read beside the loop, with the same result."""
    device = await house.device()
    text = "x" * 1000
    for number in range(20):
        await house.report(device, {"data": {"label": text}, "time": START_MS - number})
        await house.command(device, "go", payload=text)
    everything = (await house.states(device), await house.commands(device))
    monkeypatch.setattr(history, "INLINE_BYTES_MAX", 5_000)
    assert (await house.states(device), await house.commands(device)) == everything
    house.system.limits = house.system.limits.override({"answer_bytes_max": 10_000})
    for read in (house.states, house.commands):
        assert len(await read(device, limit=9)) == 9
        with pytest.raises(PayloadTooLarge, match="larger than 10000 bytes; ask for fewer entries"):
            await read(device, limit=10)
    house.system.limits = house.system.limits.override({"answer_bytes_max": 999})
    with pytest.raises(PayloadTooLarge):
        await house.composite(device)


# -- attributes that went away -------------------------------------------------------------------------------


async def test_the_values_of_a_removed_attribute_are_hidden_and_never_come_back(house: House) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1, "b": 1}, "time": START_MS - 3})
    await house.report(device, {"data": {"a": 2}, "time": START_MS - 2})
    await house.ask(device, devices.DeleteAttribute(name="a"))
    assert await house.composite(device) == {"b": (at(-3), 1)}
    assert await house.states(device) == [{"time": at(-3), "data": {"b": 1}}]
    assert await house.states(device, limit=1, sortDirection="desc") == [{"time": at(-3), "data": {"b": 1}}]
    with pytest.raises(Invalid, match="no such attribute"):
        await house.report(device, {"data": {"a": 3}})
    body = msgspec.convert({"name": "a", "dataType": "string"}, Attribute)
    await house.ask(device, devices.AddAttribute(body=body))
    assert await house.composite(device) == {"b": (at(-3), 1)}
    await house.report(device, {"data": {"a": "new"}, "time": START_MS - 2})
    assert await house.composite(device) == {"a": (at(-2), "new"), "b": (at(-3), 1)}
    house.forget()
    assert await house.states(device) == [
        {"time": at(-3), "data": {"b": 1}},
        {"time": at(-2), "data": {"a": "new"}},
    ]


async def test_what_was_taken_away_does_not_stay_in_the_head(house: House) -> None:
    """The head is written with every report, so it must not grow with what is not shown any more."""
    device = await house.device({"a": "number"})
    await house.report(device, {"data": {"a": 1}})
    sizes = set()
    for _ in range(30):
        body = msgspec.convert({"name": "label", "dataType": "string"}, Attribute)
        await house.ask(device, devices.AddAttribute(body=body))
        await house.report(device, {"data": {"label": "x" * 200}})
        await house.ask(device, devices.DeleteAttribute(name="label"))
        with house.system.store.snapshot() as snapshot:
            sizes.add(len(snapshot.head(device).head or b""))
    assert max(sizes) < 100


# -- throttles and restarts ----------------------------------------------------------------------------------


async def test_a_restarted_actor_keeps_its_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_house(tmp_path, limits=Limits()) as house:
        device, bystander = await house.device(), await house.device()
        for number in range(10):
            await house.report(device, {"data": {"a": number}})
        check = Device._check

        def bug(self: Device, report: Any, now_ms: int) -> Any:
            raise RuntimeError("a bug")

        monkeypatch.setattr(Device, "_check", bug)
        with pytest.raises(Crashed, match="was restarted; nothing of the call was stored"):
            await house.report(device, {"data": {"a": 10}})
        monkeypatch.setattr(Device, "_check", check)
        for number in range(19):
            await house.report(device, {"data": {"a": number}})
        with pytest.raises(TooManyRequests, match="30 calls of send_state in any 15 seconds"):
            await house.report(device, {"data": {"a": 1}})
        await house.report(bystander, {"data": {"a": 1}})
        found = house.system.statistics(house.ref(device))
        assert found is not None
        assert (found.restarts, found.last_error, found.refused) == (1, "RuntimeError", 1)
        house.clock.pass_s(14.999)
        with pytest.raises(TooManyRequests):
            await house.report(device, {"data": {"a": 1}})
        house.clock.pass_s(0.001)
        await house.report(device, {"data": {"a": 99}})
        assert (await house.composite(device))["a"][1] == 99


async def test_a_turn_that_fails_half_way_is_forgotten(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    device = await house.device()
    await house.report(device, {"data": {"a": 1}})
    with monkeypatch.context() as broken:

        def bug(self: Device, what: str, by: int, now_ms: int) -> None:
            raise RuntimeError("a bug after the head has changed")

        broken.setattr(Device, "_count", bug)
        for _ in range(2):
            with pytest.raises(Crashed):
                await house.report(device, {"data": {"a": 2, "b": 2}})
            with pytest.raises(Crashed):
                await house.command(device, "go")
    await house.report(device, {"data": {"label": "x"}})
    assert await house.composite(device) == {"a": (at(0), 1), "label": (at(1), "x")}
    assert await house.commands(device) == []


# -- the record ----------------------------------------------------------------------------------------------


async def test_a_device_needs_its_application(house: House) -> None:
    nowhere = Ref("device", bytes(11) + b"\x01", house.system.ids.new(START_MS))
    with pytest.raises(NotFound, match=r"^There is no application 000000000000000000000001"):
        await house.system.ask(nowhere, devices.CreateDevice(body=devices.DevicePost(name="x")))
    assert house.system.statistics(nowhere) is None


async def test_an_id_is_created_once(house: House) -> None:
    device = await house.device()
    with pytest.raises(Invalid, match="there is already a device"):
        await house.ask(device, devices.CreateDevice(body=devices.DevicePost(name="again")))


MESSAGES: list[Callable[[], Message]] = [
    lambda: devices.SendState(body=devices.StateReport(data={"a": 1})),
    lambda: devices.SendCommand(body=devices.CommandPost(name="go")),
    lambda: devices.SetConnectionStatus(body=devices.Connected()),
    lambda: devices.PatchDevice(body=devices.DevicePatch(name="x")),
    lambda: devices.DeleteDevice(),
    lambda: devices.DeleteAttribute(name="a"),
]


@pytest.mark.parametrize("message", MESSAGES)
async def test_a_deleted_device_takes_nothing_any_more(house: House, message: Callable[[], Message]) -> None:
    device = await house.device()
    await house.ask(device, devices.DeleteDevice())
    with pytest.raises(NotFound, match=f"^There is no device {device.hex()} here"):
        await house.ask(device, message())
    with pytest.raises(NotFound):
        house.listen(device)
    with pytest.raises(NotFound):
        await house.states(device)
    assert house.system.statistics(house.ref(device)) is None


async def test_two_devices_do_not_become_each_others_parents_at_once(house: House) -> None:
    one = await house.device(deviceClass="system")
    two = await house.device(deviceClass="system")
    refusals: list[str] = []

    async def adopt(child: bytes, parent: bytes) -> None:
        try:
            await house.ask(child, devices.PatchDevice(body=devices.DevicePatch(parent_id=parent.hex())))
        except Invalid as refusal:
            refusals.append(refusal.message)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(adopt, one, two)
        nursery.start_soon(adopt, two, one)
    (refusal,) = refusals
    assert "is a descendant of this device and cannot be its parent" in refusal


async def test_no_more_than_a_hundred_devices_stand_above_one(house: House) -> None:
    above: bytes | None = None
    for _ in range(100):
        parent = {} if above is None else {"parentId": above.hex()}
        above = await house.device({}, deviceClass="system", **parent)
    assert above is not None
    with pytest.raises(Invalid, match="has 100 devices above it, which is the limit"):
        await house.device({}, parentId=above.hex())


async def test_a_caller_who_leaves_loses_the_answer_and_not_the_effect(house: House) -> None:
    """The cancellation test of every path that waits: ask, and read in a worker thread."""
    device = await house.device()
    with trio.CancelScope() as scope:
        scope.cancel()
        await house.report(device, {"data": {"a": 1}})
    assert scope.cancelled_caught
    await house.command(device, "go")
    assert await house.composite(device) == {"a": (at(0), 1)}
    stream = house.listen(device)
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.receive()
    await house.command(device, "again")
    ((_, event),) = await stream.receive()
    assert msgspec.json.decode(event)["name"] == "again"
