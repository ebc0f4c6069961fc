"""A replay sends every row once, obeys the throttle, and detects any value that is not read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from tests.patience import PATIENCE_S
from trunkline.bench import replay as replay_module
from trunkline.bench.errors import BenchError, NotFound
from trunkline.bench.framing import Response
from trunkline.bench.measurements import DeviceSeries, Measurements
from trunkline.bench.pacing import Pacer
from trunkline.bench.replay import Replay
from trunkline.bench.session import Session


def measured(*rows: tuple[int, dict[str, Any]], name: str = "probe") -> Measurements:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string"}
    attributes = {key: kinds[type(value)] for _, row in rows for key, value in row.items()}
    series = DeviceSeries(name, attributes, [time for time, _ in rows], [row for _, row in rows])
    return Measurements(series={name: series}, rows_read=len(rows))


def hourly(count: int) -> Measurements:
    return measured(*((1_000_000 + n * 3_600_000, {"temp": n / 10, "on": n % 2 == 0}) for n in range(count)))


async def run(
    api: Any, measurements: Measurements, *, application_id: str | None = None, **options: Any
) -> Replay:
    session = Session(api.url, patience_s=5)
    await session.login(api.email, api.password)
    replay = Replay(session, measurements, **options)
    with trio.fail_after(PATIENCE_S):
        await replay.prepare(application_id=application_id, name="replay")
        await replay.send()
        await replay.compare()
    return replay


async def test_every_row_comes_back(fake_api: Any) -> None:
    counts = (await run(fake_api, hourly(2500), states_per_call=200)).counts
    assert counts.equal
    assert (counts.sent, counts.acknowledged, counts.refused) == (2500, 2500, 0)
    assert (counts.calls, counts.points, counts.points_read, counts.values_equal) == (
        13,
        2500,
        2500,
        5000,
    )


async def test_a_body_is_bounded_in_bytes(fake_api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "CALL_BYTES_MAX", 500)
    counts = (await run(fake_api, hourly(100))).counts
    assert counts.equal
    assert counts.calls > 5


async def test_rows_of_one_time_are_laid_over_each_other_and_counted(fake_api: Any) -> None:
    rows = measured((5000, {"a": 1, "b": 1}), (5000, {"b": 2}), (6000, {"a": 3}))
    counts = (await run(fake_api, rows, states_per_call=1)).counts
    assert counts.equal
    assert (counts.acknowledged, counts.points, counts.points_read, counts.values_equal) == (3, 2, 2, 3)


@pytest.mark.parametrize(
    ("keep", "missing", "different"),
    [
        (lambda device, time, data: None if data["temp"] == 0.7 else data, 1, 0),
        (lambda device, time, data: data | ({"temp": 0.71} if data["temp"] == 0.7 else {}), 0, 1),
        (lambda device, time, data: data | ({"on": int(data["on"])} if data["temp"] == 0.7 else {}), 0, 1),
        (lambda device, time, data: data | ({"more": 1} if data["temp"] == 0.7 else {}), 0, 1),
    ],
)
async def test_a_difference_is_found(
    fake_api: Any, keep: Callable[..., Any], missing: int, different: int
) -> None:
    fake_api.keep = keep
    counts = (await run(fake_api, hourly(20))).counts
    assert not counts.equal
    assert (counts.missing, counts.different, counts.unexpected) == (missing, different, 0)


async def test_a_point_that_nobody_sent_is_found(fake_api: Any) -> None:
    fake_api.keep = lambda device, time, data: fake_api.states[device].update({1_000_001: {}}) or data
    counts = (await run(fake_api, hourly(20))).counts
    assert (counts.equal, counts.unexpected) == (False, 1)


async def test_refused_rows_are_found_one_by_one_and_the_others_are_stored(fake_api: Any) -> None:
    def answer(device: str, states: list[Any], number: int) -> Any:
        bad = any(state["data"]["temp"] in (0.3, 1.7) for state in states)
        return fake_api.refusal(400, "Validation", "Too cold.") if bad else None

    fake_api.answer_state = answer
    counts = (await run(fake_api, hourly(20))).counts
    assert counts.equal
    assert (counts.sent, counts.acknowledged, counts.refused, counts.points_read) == (20, 18, 2, 18)
    assert counts.reasons == {"400 Validation": 2}
    assert counts.examples[0].endswith("Too cold.")


async def test_calls_without_an_answer_and_refused_for_now_are_sent_again(
    fake_api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "BREAK_PAUSE_S", 0.0)
    fake_api.cut = lambda method, path, number: (
        method == "POST" and path.endswith("/state") and number % 3 == 0
    )
    fake_api.answer_state = lambda device, states, number: (
        fake_api.refusal(429, "TooManyRequests", "Later.", retry_after="0") if number % 2 else None
    )
    counts = (await run(fake_api, hourly(20), states_per_call=5)).counts
    assert counts.equal
    assert counts.acknowledged == 20
    assert counts.throttled_calls > 0
    assert counts.repeated_calls > 0
    assert counts.calls == 4 + counts.throttled_calls + counts.repeated_calls


async def test_an_existing_device_is_used_its_attributes_kept_and_its_points_left_alone(
    fake_api: Any,
) -> None:
    first = await run(fake_api, measured((5000, {"a": 1}), (7000, {"a": 2})))
    second = await run(
        fake_api, measured((5000, {"b": "x"}), (8000, {"b": "y"})), application_id=first.application_id
    )
    assert (first.devices_created, second.devices_created) == (1, 0)
    assert second.counts.equal
    assert (second.counts.points_read, second.counts.others) == (2, 1)
    (device,) = fake_api.devices.values()
    assert device["attributes"] == [{"name": "a", "dataType": "number"}, {"name": "b", "dataType": "string"}]
    with pytest.raises(BenchError, match="has 'a' as number; the file has it as string"):
        await run(fake_api, measured((1000, {"a": "x"})), application_id=first.application_id)


async def test_an_unknown_application_ends_the_replay(fake_api: Any) -> None:
    with pytest.raises(NotFound):
        await run(fake_api, hourly(1), application_id="f" * 24)


async def test_the_original_pace_n_fold(autojump_clock: trio.testing.MockClock) -> None:
    sent: list[tuple[float, int]] = []

    class Instant(Replay):
        async def _post(self, device: Any, body: bytes) -> Response:
            await trio.sleep(0.25)
            sent.append((trio.current_time() - started_s, body.count(b'"time"')))
            return Response(200, b"HTTP/1.1 200 OK", b"")

    times = (10_000, 20_000, 20_500, 21_000, 60_000)
    replay = Instant(Session("http://127.0.0.1:1"), measured(*((time, {"a": 1}) for time in times)))
    started_s = trio.current_time()
    await replay.send(speed=10)
    assert [round(at_s, 6) for at_s, _ in sent] == [0.25, 1.25, 1.5, 5.25]
    assert [states for _, states in sent] == [1, 1, 2, 1]
    assert replay.counts.elapsed_s == pytest.approx(5.25)
    with pytest.raises(BenchError):
        await replay.send(speed=0)


@pytest.mark.parametrize(
    ("status", "headers", "wait_s"),
    [
        (200, b'RateLimit: "device.sendState";r=3;t=12', 0),
        (200, b'RateLimit: "device.sendState";r=0;t=12', 12),
        (200, b'RateLimit: "device.sendState";t=12;r=0', 12),
        (200, b"RateLimit: limit=30, remaining=0, reset=4", 4),
        (200, b"X-Other: r=0;t=9", 0),
        (429, b"Retry-After: 7", 7),
        (429, b'RateLimit: "device.sendState";r=0;t=12', 1),
        (503, b"Retry-After: soon", 1),
    ],
)
def test_the_pace_is_learned_from_the_server(status: int, headers: bytes, wait_s: float) -> None:
    pacer = Pacer()
    pacer.learn(Response(status, b"HTTP/1.1 200 OK\r\n" + headers, b""), 100.0)
    assert pacer.wait_s(100.0) == wait_s
    assert pacer.wait_s(200.0) == 0
