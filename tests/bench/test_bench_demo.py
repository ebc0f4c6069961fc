"""Demo devices report plausible states, execute the commands they know, and recover from every interruption.

All of them post here; `test_bench_real_server.py` runs the one on the link.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from trunkline.bench import demo
from trunkline.bench.demo import DemoReady, curl_lines, run_demo
from trunkline.bench.demo_device import DemoDevice
from trunkline.bench.demo_incident import COMPRESSOR, FREEZER, STANDBY, Incident, incident_before
from trunkline.bench.demo_past import WEEK_S, past_states
from trunkline.bench.demo_plant import GATEWAY, LOW_BATTERY, device_record, plant
from trunkline.bench.demo_rules import BATTERY_LIMIT, CHILLER_LIMIT, FREEZER_LIMIT
from trunkline.bench.history import to_iso

NOW_S = 1_795_800_000.0
KINDS = {"number": float, "boolean": bool, "string": str, "gps": str}
NAMES = sorted(model.name for model in plant(NOW_S))


def device(name: str, incident: Incident | None = None) -> DemoDevice:
    """The device of this name, of a demo that runs now."""
    return next(model for model in plant(NOW_S, incident) if model.name == name)


def test_there_are_24_devices_of_nine_recipes() -> None:
    assert len(set(NAMES)) == 24
    assert len({model.recipe for model in plant(NOW_S)}) == 9


@given(at_s=st.floats(1.5e9, 3e9), known=st.booleans())
def test_a_device_reports_exactly_what_its_recipe_declares(at_s: float, known: bool) -> None:
    for model in plant(NOW_S, incident_before(NOW_S) if known else None):
        state = model.state(at_s)
        assert {name: KINDS[kind] for name, (kind, _) in model.attributes.items()} == {
            name: float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
            for name, value in state.items()
        }
        json.dumps(state, allow_nan=False)
        assert state == model.state(at_s)


@given(name=st.text(), payload=st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_a_command_that_is_not_understood_changes_nothing(name: str, payload: object) -> None:
    for model in plant(NOW_S):
        before = model.state(NOW_S)
        text = payload if isinstance(payload, str) else None
        for command, given_ in (
            (f"{name}?", payload),
            ("setTarget", {"value": text}),
            ("switch", {"on": "yes"}),
        ):
            assert model.obey(command, given_, NOW_S) is None
        assert model.state(NOW_S) == before


def test_commands_have_forms_and_numbers_have_units_in_the_console() -> None:
    chiller = device("chiller-1")
    record = device_record(chiller, {})
    assert [tag["value"] for tag in record["tags"] if tag["key"] == "command"] == [
        "setTarget value:number",
        "switch on:boolean",
    ]
    assert {one["name"]: one["attributeTags"]["unit"] for one in record["attributes"][:3]} == {
        "temperature": "°C",
        "humidity": "%",
        "target": "°C",
    }
    assert device_record(device("door-1"), {GATEWAY: "a" * 24})["gatewayId"] == "a" * 24


def test_a_cold_room_follows_its_target_and_becomes_warm_without_cooling() -> None:
    room = device("chiller-1")
    assert room.obey("setTarget", {"value": 9}, NOW_S) == "target is 9 degrees"
    assert room.state(NOW_S)["temperature"] == pytest.approx(4, abs=1)
    assert room.state(NOW_S + 600)["temperature"] == pytest.approx(9, abs=1)
    assert room.obey("switch", False, NOW_S + 600) == "cooling is off"
    state = room.state(NOW_S + 7200)
    assert (float(state["temperature"]) > 15, state["cooling"]) == (True, False)


def test_a_pump_keeps_its_tank_between_its_marks_and_stops_when_switched_off() -> None:
    pump = device("pump-1")
    levels = [float(pump.state(NOW_S + 60 * minute)["level"]) for minute in range(60)]
    assert 54 <= min(levels) < 57
    assert 89 < max(levels) <= 92
    assert pump.obey("switch", {"on": False}, NOW_S) == "pump is off"
    state = pump.state(NOW_S + 5)
    assert (state["running"], state["flow"]) == (False, 0.0)


def test_a_truck_drives_to_its_town_and_back() -> None:
    truck = device("truck-1")
    states = [truck.state(NOW_S + 600 * at) for at in range(48)]
    places = [tuple(map(float, str(state["position"]).split(","))) for state in states]
    assert min(places)[0] == pytest.approx(52.38, abs=0.01)
    assert max(places)[0] == pytest.approx(53.54, abs=0.01)
    assert {state["speed"] == 0 for state in states} == {True, False}
    assert all(0 < float(state["charge"]) < 100 for state in states)


def test_a_meter_counts_up() -> None:
    meter = device("meter-plant")
    counts = [float(meter.state(NOW_S + 3600 * hour)["energy"]) for hour in range(48)]
    assert counts == sorted(set(counts))


def test_nothing_is_outside_of_its_limits_but_one_battery_and_in_the_incident_one_freezer() -> None:
    """At all times of a week: the rules of the demo, applied to what its devices report."""
    incident, warm_s, low = incident_before(NOW_S), [], set()
    for model in plant(NOW_S, incident):
        for at_s in range(int(NOW_S - WEEK_S), int(NOW_S) + 3600, 300):
            state = model.state(at_s)
            if model.area in ("freezers", "chillers"):
                limit = FREEZER_LIMIT if model.area == "freezers" else CHILLER_LIMIT
                if float(state["temperature"]) > limit:
                    warm_s.append((model.name, at_s))
            if "battery" in state and float(state["battery"]) < BATTERY_LIMIT:
                low.add(model.name)
            if "fault" in state:
                tripped = model.name == COMPRESSOR and incident.is_tripped(at_s)
                assert (state["fault"] != "none") == tripped
                assert state["running"] == (
                    (model.name != STANDBY or incident.is_helped(at_s)) and not tripped
                )
    assert {name for name, _ in warm_s} == {FREEZER}
    assert all(incident.began_s < at_s < incident.over_s for _, at_s in warm_s)
    assert low == {LOW_BATTERY}


def test_the_states_of_the_past_are_in_order_and_fit_into_one_call() -> None:
    times = [state["time"] for state in past_states(device("freezer-1"), NOW_S)]
    assert times == sorted(set(times))
    assert 400 < len(times) <= 1000
    assert times[0] > to_iso(round(1000 * (NOW_S - WEEK_S - 1)))
    assert to_iso(round(1000 * (NOW_S - 300))) < times[-1] <= to_iso(round(1000 * NOW_S))


async def test_a_demo_reports_obeys_and_resumes_its_command_stream(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.01)
    monkeypatch.setattr(demo, "PAUSE_MIN_S", 0.01)
    ready: list[DemoReady] = []
    lines: list[str] = []

    def on_ready(one: DemoReady) -> None:
        ready.append(one)
        fake_api.commands[one.device_ids["chiller-1"]] = [
            '{"name": "setTarget", "payload": {"value": 3}}',
            '{"name": "dance"}',
            "no command",
            '{"name": "setTarget", "payload": {"value": 5}, "time": 5}',
        ]
        fake_api.cut = lambda method, path, number: number % 5 == 0

    def done() -> bool:
        """The target is reached, each device has reported more than once, and a cut was told."""
        return (
            bool(ready)
            and any(state["target"] == 5 for state in fake_api.latest[ready[0].device_ids["chiller-1"]])
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
                linked=set(),
            )

        nursery.start_soon(run)
        await fake_api.until(done)
        nursery.cancel_scope.cancel()
    assert len(ready) == 1
    assert list(fake_api.applications.values()) == ["Trunkline demo"]
    assert sorted(ready[0].device_ids) == NAMES
    assert all(len(fake_api.latest[one]) > 1 for one in ready[0].device_ids.values())
    assert {message["topic"] for message in fake_api.published} == {
        f"plant/{name}" for name in demo.PUBLISHED
    }
    assert "chiller-1: setTarget: target is 3 degrees" in lines
    assert any("dance: not understood; it knows setTarget" in line for line in lines)
    assert any("an invalid command" in line for line in lines)
    assert any(line.endswith("The devices keep trying.") for line in lines)
    assert (ready[0].device_ids["chiller-1"], "4") in fake_api.streams


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
    assert len(fake_api.devices) == 24


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
    assert sorted(lines) == [f"{name} was deleted and stops" for name in NAMES]


async def test_two_devices_publish_every_second_state(fake_api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PERIOD_S", 0.01)

    def published(name: str) -> list[Any]:
        return [json.loads(one["message"]) for one in fake_api.published if one["topic"] == f"plant/{name}"]

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
    ready = DemoReady("http://127.0.0.1:8080/", "a" * 24, {"chiller-1": "b" * 24})
    state, command, stream = (shlex.split(line) for line in curl_lines(ready))
    base = f"http://127.0.0.1:8080/applications/{'a' * 24}/devices/{'b' * 24}"
    assert [state[-1], command[-1], stream[-1]] == [f"{base}/state", f"{base}/command", f"{base}/stateStream"]
    assert json.loads(command[command.index("-d") + 1]) == {"name": "setTarget", "payload": {"value": 3}}
    assert "Authorization: Bearer $TOKEN" in state
