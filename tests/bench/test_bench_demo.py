"""Demo devices report plausible states, execute the commands they know, and recover from every interruption.

All of them post here; `test_bench_real_server.py` runs the one on the link.
"""

from __future__ import annotations

import json
import shlex
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from trunkline.bench import demo
from trunkline.bench.demo import DemoReady, curl_lines, run_demo
from trunkline.bench.demo_device_record import UNITS, command_form
from trunkline.bench.demo_devices import (
    DEMO_DEVICES,
    ColdStore,
    DemoDevice,
    Greenhouse,
    Meter,
    Pump,
    Van,
)

KINDS = {"number": float, "boolean": bool, "string": str, "gps": str}


@pytest.mark.parametrize("kind", DEMO_DEVICES)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.floats(-10, 1e6), min_size=1, max_size=30))
def test_a_device_reports_exactly_what_it_declares(
    kind: type[DemoDevice], seed: int, steps: list[float]
) -> None:
    device = kind(Random(seed))
    for passed_s in steps:
        state = device.step(passed_s)
        assert {name: KINDS[kind.attributes[name]] for name in state} == {
            name: float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
            for name, value in state.items()
        }
        assert state.keys() == kind.attributes.keys()
        json.dumps(state, allow_nan=False)


@given(name=st.text(), payload=st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_a_command_that_is_not_understood_changes_nothing(name: str, payload: object) -> None:
    for kind in DEMO_DEVICES:
        assert kind(Random(1)).obey(f"{name}?", payload) is None
        assert (
            kind(Random(1)).obey("setTarget", {"value": payload if isinstance(payload, str) else None})
            is None
        )
        assert kind(Random(1)).obey("switch", {"on": "yes"}) is None


def test_commands_have_forms_and_attributes_have_units_in_the_console() -> None:
    forms = [command_form(*each) for each in Greenhouse.commands.items()]
    assert forms == ["setTarget value:number", "switch on:boolean"]
    numbers = {name for kind in DEMO_DEVICES for name, is_a in kind.attributes.items() if is_a == "number"}
    assert numbers == UNITS.keys()


def after(device: DemoDevice, seconds: int) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for _ in range(seconds):
        state = device.step(1)
    return state


def test_the_greenhouse_follows_its_target() -> None:
    device = Greenhouse(Random(7))
    for target in (27, 14):
        assert device.obey("setTarget", {"value": target}) == f"target is {target} degrees"
        state = after(device, 600)
        assert state["target"] == target
        assert abs(state["temperature"] - target) < 1.5
    device.obey("switch", False)
    device.obey("setTarget", 40)
    assert after(device, 60)["heater"] is False


def test_the_pump_keeps_the_tank_between_its_marks_and_stops_when_switched_off() -> None:
    device = Pump(Random(7))
    levels = [after(device, 1)["level"] for _ in range(600)]
    assert 50 < min(levels) < 60 < 85 < max(levels) < 92
    assert device.obey("switch", {"on": False}) == "pump is off"
    state = after(device, 5)
    assert (state["running"], state["flow"]) == (False, 0.0)


def test_the_van_drives_its_round_and_stops_when_locked() -> None:
    device = Van(Random(7))
    places = {after(device, 10)["position"] for _ in range(20)}
    assert len(places) == 20
    for place in places:
        latitude, longitude = map(float, place.split(","))
        assert abs(latitude - 48.7758) < 0.02
        assert abs(longitude - 9.1829) < 0.03
    assert device.obey("lock", {"on": True}) == "stops and locks"
    state = after(device, 20)
    assert (state["speed"], state["moving"], state["locked"]) == (0.0, False, True)


def test_the_meter_counts_up_and_only_while_its_relay_is_closed() -> None:
    device = Meter(Random(7))
    first, second = after(device, 10)["energy"], after(device, 10)["energy"]
    assert second > first
    device.obey("switch", {"on": False})
    state = after(device, 10)
    assert (state["power"], state["energy"]) == (0.0, second)


def test_the_cold_store_warms_up_without_its_compressor() -> None:
    device = ColdStore(Random(7))
    assert abs(after(device, 300)["temperature"] + 18) < 3
    device.obey("switch", {"on": False})
    assert after(device, 900)["alarm"] is True


async def test_a_demo_reports_obeys_and_resumes_its_command_stream(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.01)
    monkeypatch.setattr(demo, "PAUSE_MIN_S", 0.01)
    ready: list[DemoReady] = []
    lines: list[str] = []

    def on_ready(one: DemoReady) -> None:
        ready.append(one)
        fake_api.commands[one.device_ids["greenhouse-north"]] = [
            '{"name": "setTarget", "payload": {"value": 27}}',
            '{"name": "dance"}',
            "no command",
            '{"name": "setTarget", "payload": {"value": 31}, "time": 5}',
        ]
        fake_api.cut = lambda method, path, number: number % 5 == 0

    def done() -> bool:
        """The target is reached, each device has reported more than once, and a cut was told."""
        return (
            bool(ready)
            and any(
                state["target"] == 31 for state in fake_api.latest[ready[0].device_ids["greenhouse-north"]]
            )
            and all(len(fake_api.latest[one]) > 1 for one in ready[0].device_ids.values())
            and any(line.endswith("The devices keep trying.") for line in lines)
        )

    monkeypatch.setattr("trunkline.bench.event_stream.QUIET_TIMEOUT_S", 0.05)
    monkeypatch.setattr("trunkline.bench.demo.open_events", quick_events)
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_demo(
                fake_api.url,
                "t0ken",
                on_ready=on_ready,
                on_event=lines.append,
                random=Random(3),
                linked=set(),
            )

        nursery.start_soon(run)
        await fake_api.until(done)
        nursery.cancel_scope.cancel()
    assert len(ready) == 1
    assert list(fake_api.applications.values()) == ["Trunkline demo"]
    assert sorted(ready[0].device_ids) == sorted(kind.name for kind in DEMO_DEVICES)
    assert all(len(fake_api.latest[one]) > 1 for one in ready[0].device_ids.values())
    assert {message["topic"] for message in fake_api.published} == {f"farm/{name}" for name in demo.PUBLISHED}
    assert "greenhouse-north: setTarget: target is 27 degrees" in lines
    assert any("dance: not understood; it knows setTarget" in line for line in lines)
    assert any("an invalid command" in line for line in lines)
    assert any(line.endswith("The devices keep trying.") for line in lines)
    assert (ready[0].device_ids["greenhouse-north"], "4") in fake_api.streams


def quick_events(*positional: Any, **named: Any) -> Any:
    from trunkline.bench.event_stream import open_events

    return open_events(*positional, **named, quiet_timeout_s=0.05)


async def test_a_second_demo_uses_the_devices_of_the_first(fake_api: Any) -> None:
    seen: list[DemoReady] = []
    for _ in range(2):
        async with trio.open_nursery() as nursery:

            def on_ready(one: DemoReady, nursery: trio.Nursery = nursery) -> None:
                seen.append(one)
                nursery.cancel_scope.cancel()

            with trio.fail_after(PATIENCE_S):
                await run_demo(fake_api.url, "t0ken", on_ready=on_ready, linked=set())
    assert seen[0] == seen[1]
    assert len(fake_api.devices) == len(DEMO_DEVICES)


async def test_a_demo_ends_when_its_devices_are_deleted(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.01)
    lines: list[str] = []
    with trio.fail_after(PATIENCE_S):
        await run_demo(
            fake_api.url,
            "t0ken",
            on_ready=lambda _: fake_api.devices.clear(),
            on_event=lines.append,
            linked=set(),
        )
    assert sorted(lines) == sorted(f"{kind.name} was deleted and stops" for kind in DEMO_DEVICES)


async def test_two_devices_publish_every_second_state(fake_api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.01)

    def published(name: str) -> list[Any]:
        return [json.loads(one["message"]) for one in fake_api.published if one["topic"] == f"farm/{name}"]

    ready: list[DemoReady] = []
    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await run_demo(fake_api.url, "t0ken", on_ready=ready.append, linked=set())

        nursery.start_soon(run)
        await fake_api.until(lambda: bool(ready) and all(len(published(name)) > 2 for name in demo.PUBLISHED))
        nursery.cancel_scope.cancel()
    for name in demo.PUBLISHED:
        states = fake_api.latest[ready[0].device_ids[name]]
        assert published(name)[:3] == states[:6:2]


def test_the_lines_to_try_are_good_shell_and_name_the_device() -> None:
    ready = DemoReady("http://127.0.0.1:8080/", "a" * 24, {"greenhouse-north": "b" * 24})
    state, command, stream = (shlex.split(line) for line in curl_lines(ready))
    base = f"http://127.0.0.1:8080/applications/{'a' * 24}/devices/{'b' * 24}"
    assert [state[-1], command[-1], stream[-1]] == [f"{base}/state", f"{base}/command", f"{base}/stateStream"]
    assert json.loads(command[command.index("-d") + 1]) == {"name": "setTarget", "payload": {"value": 27}}
    assert "Authorization: Bearer $TOKEN" in state
