"""Event streams on a virtual clock: frames, keep-alives, replay, and every way in which a stream ends.

The module is long because all streams share one mechanism. Requests go through the dispatcher without a socket, so that
each wait is exact. The clock is an argument of each test,
because pytest-trio looks for it only there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from tests.actors.house import START_MS, House, at, running_house
from trunkline.actors.core.records.messages import CreateRecord, Creator, PatchRecord
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.platform.applications.keys import KeyPatch, KeyPost
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.request import Request, Response, Stream
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

BY = Creator("0" * 24, "user", "nobody")
COMMENT = b":\n\n"


class Api:
    """A dispatcher, and a device that may open streams."""

    def __init__(self, house: House, dispatcher: Dispatcher, key: bytes, device: bytes) -> None:
        self.house = house
        self.dispatcher = dispatcher
        self.key = key
        self.device = device

    @property
    def streams(self) -> int:
        return len(self.house.system.streams)

    @property
    def log_end(self) -> int:
        """The position after all states."""
        return (self.house.system.store.arrivals.seq + 1) << 32

    def token(self, ttl_s: float | None = None) -> str:
        claims = {
            "typ": "device",
            "sub": self.device.hex(),
            "app": self.house.application.hex(),
            "key": self.key.hex(),
        }
        return self.dispatcher.tokens.issue(claims, ["all.Device"], self.house.system.clock.wall_ms(), ttl_s)

    async def get(
        self,
        query: str = "",
        *,
        resource: str = "commandStream",
        ttl_s: float | None = None,
        method: str = "GET",
        **headers: str,
    ) -> Response:
        path = f"/applications/{self.house.application.hex()}/devices/{self.device.hex()}/{resource}"
        named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        named[b"authorization"] = f"Bearer {self.token(ttl_s)}".encode()
        return await self.dispatcher.handle(Request(method, path, query.encode(), named, b"", "127.0.0.1"))

    async def open(self, query: str = "", **kw: Any) -> Stream:
        response = await self.get(query, **kw)
        assert response.status == 200, response.body
        assert response.stream is not None
        return response.stream

    async def refused(self, query: str = "", **kw: Any) -> str:
        response = await self.get(query, **kw)
        assert response.status == 400, (query, kw)
        assert response.stream is None
        assert self.streams == 0, "a refused stream leaves nothing open"
        message: str = msgspec.json.decode(response.body)["message"]
        return message


class VirtualWall:
    """The system's clocks, driven by Trio's clock, which jumps to the next deadline. Threads read them as well."""

    def __init__(self) -> None:
        self._clock = trio.lowlevel.current_clock()

    def wall_ms(self) -> int:
        return START_MS + round(self.monotonic_s() * 1000)

    def monotonic_s(self) -> float:
        return self._clock.current_time()


async def api_of(house: House, device: bytes) -> Api:
    settings = Settings(data_dir=str(house.system.store.directory.path))
    ref = Ref("application", ROOT, house.application)
    made = await house.system.ask(ref, CreateRecord(resource="applicationKey", body=KeyPost(), by=BY))
    return Api(house, make_dispatcher(house.system, settings), made.value.id, device)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    limits = Limits.off().override({"stream_replay_max": 3, "stream_buffer_length_max": 8})
    async with running_house(tmp_path / "data", limits=limits) as house:
        house.system.clock = VirtualWall()
        yield await api_of(house, await house.device())


def parsed(piece: bytes | None) -> list[tuple[int, Any]]:
    """The events of a piece as `(id, data)`; every byte of their framing is checked."""
    assert piece is not None
    assert piece.endswith(b"\n\n")
    events = []
    for frame in piece.removeprefix(COMMENT).split(b"\n\n")[:-1]:
        event, id, data = frame.split(b"\n")
        assert event == b"event: deviceCommand"
        assert id.startswith(b"id: ")
        assert data.startswith(b"data: ")
        events.append((int(id[4:]), msgspec.json.decode(data[6:])))
    return events


def names(piece: bytes | None) -> list[str]:
    return [data["name"] for _, data in parsed(piece)]


# -- frames and keep-alives ----------------------------------------------------------------------------------


async def test_a_stream_opens_with_a_comment_and_frames_commands(api: Api, autojump_clock: MockClock) -> None:
    response = await api.get()
    assert response.headers == [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store, no-transform"),
        (b"x-accel-buffering", b"no"),
    ]
    stream = response.stream
    assert stream is not None
    assert await stream.next() == COMMENT
    now_ms = api.house.system.clock.wall_ms()
    await api.house.command(api.device, "go", payload="two\nlines")
    position = now_ms << 32 | 1
    data = '{"name":"go","time":"' + at(now_ms - START_MS) + '","payload":"two\\nlines"}'
    assert await stream.next() == f"event: deviceCommand\nid: {position}\ndata: {data}\n\n".encode()


@pytest.mark.parametrize(
    ("query", "interval_s"),
    [("", 2), ("keepAliveInterval=1", 1), ("keepAliveInterval=2.5", 2.5), ("keepAliveInterval=60", 60)],
)
async def test_a_quiet_stream_is_kept_alive(
    api: Api, autojump_clock: MockClock, query: str, interval_s: float
) -> None:
    stream = await api.open(query)
    assert await stream.next() == COMMENT
    for _ in range(5):
        before_s = trio.current_time()
        assert await stream.next() == COMMENT
        assert trio.current_time() - before_s == pytest.approx(interval_s, abs=1e-6)


@pytest.mark.parametrize(
    "interval", ["0.999", "0", "-1", "60.001", "61", "1e3", "nan", "inf", "-inf", "x", "1e999", "2;3", "null"]
)
async def test_an_interval_out_of_bounds_is_refused(
    api: Api, autojump_clock: MockClock, interval: str
) -> None:
    for resource in ("commandStream", "stateStream"):
        message = await api.refused(f"keepAliveInterval={interval}", resource=resource)
        assert message.startswith("keepAliveInterval: "), message


async def test_an_event_puts_the_next_comment_off(api: Api, autojump_clock: MockClock) -> None:
    stream = await api.open()
    await stream.next()
    start_s = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(1.5)
            await api.house.command(api.device, "go")

        nursery.start_soon(later)
        assert names(await stream.next()) == ["go"]
        assert trio.current_time() - start_s == pytest.approx(1.5, abs=1e-6)
        assert await stream.next() == COMMENT
        assert trio.current_time() - start_s == pytest.approx(3.5, abs=1e-6)


async def test_a_revoked_token_that_still_holds_neither_sends_nor_delays_a_comment(
    api: Api, autojump_clock: MockClock
) -> None:
    stream = await api.open()
    await stream.next()
    start_s = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def nudges() -> None:
            for _ in range(19):
                await trio.sleep(0.1)
                api.house.system.revocations.revoke(api.key)

        nursery.start_soon(nudges)
        assert await stream.next() == COMMENT
        assert trio.current_time() - start_s == pytest.approx(2, abs=1e-6)


async def test_all_events_that_wait_come_in_one_piece_and_in_order(
    api: Api, autojump_clock: MockClock
) -> None:
    stream, other = await api.open(), await api.open()
    for reader in (stream, other):
        await reader.next()
    for number in range(5):
        await api.house.command(api.device, f"c{number}")
    events = parsed(await stream.next())
    assert [data["name"] for _, data in events] == [f"c{number}" for number in range(5)]
    assert [id for id, _ in events] == sorted({id for id, _ in events})
    assert parsed(await other.next()) == events


async def test_a_state_stream_frames_states_in_the_order_of_their_arrival(
    api: Api, autojump_clock: MockClock
) -> None:
    stream = await api.open(resource="stateStream")
    start = api.log_end
    assert await stream.next() == b":\nid: %d\n\n" % start
    await api.house.report(api.device, {"data": {"a": 1}, "time": START_MS}, {"data": {"a": 2}, "time": 1})
    first, second = (
        b'event: deviceState\nid: %d\ndata: {"time":"2024-05-01T12:00:00.000Z","data":{"a":1}}\n\n'
        % (start + 1),
        b'event: deviceState\nid: %d\ndata: {"time":"1970-01-01T00:00:01.000Z","data":{"a":2}}\n\n'
        % (start + 2),
    )
    assert await stream.next() == first + second
    assert await stream.next() == b":\nid: %d\n\n" % api.log_end, "all of this commit is sent"
    back = await api.open(resource="stateStream", last_event_id=str(start + 1))
    assert await back.next() == COMMENT + second
    assert await back.next() == b":\nid: %d\n\n" % api.log_end


async def test_a_client_with_an_id_that_is_not_kept_is_told_and_goes_on(
    api: Api, autojump_clock: MockClock
) -> None:
    await api.house.report(api.device, {"data": {"a": 1}})
    for last in ("0", str(api.log_end + (5 << 32))):
        stream = await api.open(resource="stateStream", last_event_id=last)
        piece = await stream.next()
        assert piece is not None
        assert piece.startswith(
            COMMENT + b'event: reset\nid: %d\ndata: {"message":"Not everything' % api.log_end
        )
        stream.close()
    stream = await api.open(resource="stateStream", last_event_id="0")
    await stream.next()
    position = api.log_end + 1
    await api.house.report(api.device, {"data": {"a": 2}, "time": 1})
    assert await stream.next() == (
        b'event: deviceState\nid: %d\ndata: {"time":"1970-01-01T00:00:01.000Z","data":{"a":2}}\n\n' % position
    )


async def test_a_reader_who_waits_and_leaves_loses_no_event(api: Api, autojump_clock: MockClock) -> None:
    stream = await api.open()
    await stream.next()
    with trio.move_on_after(1):
        await stream.next()
    await api.house.command(api.device, "go")
    assert names(await stream.next()) == ["go"]


# -- replay --------------------------------------------------------------------------------------------------


async def test_what_was_missed_is_replayed_page_by_page_and_then_live(
    api: Api, autojump_clock: MockClock
) -> None:
    """Three a page: commands that come during the replay come once, and in their place."""
    stream = await api.open()
    await stream.next()
    for number in range(8):
        await api.house.command(api.device, f"c{number}")
    first = parsed(await stream.next())
    stream.close()
    back = await api.open(last_event_id=str(first[0][0]))
    seen = parsed(await back.next())
    assert [data["name"] for _, data in seen] == ["c1", "c2", "c3"]
    await api.house.command(api.device, "c8")
    seen += parsed(await back.next())
    assert len(seen) == 6
    await api.house.command(api.device, "c9")
    seen += parsed(await back.next())
    assert [data["name"] for _, data in seen] == [f"c{number}" for number in range(1, 10)]
    await api.house.command(api.device, "c10")
    seen += parsed(await back.next())
    assert [data["name"] for _, data in seen] == [f"c{number}" for number in range(1, 11)]
    assert len({id for id, _ in seen}) == 10
    assert await back.next() == COMMENT


async def test_replay_from_the_beginning_and_from_the_end(api: Api, autojump_clock: MockClock) -> None:
    await api.house.command(api.device, "first")
    await api.house.command(api.device, "second")
    assert names(await (await api.open(last_event_id="0")).next()) == ["first", "second"]
    assert await (await api.open(last_event_id="9" * 28)).next() == COMMENT
    assert await (await api.open(last_event_id="  ")).next() == COMMENT
    assert await (await api.open()).next() == COMMENT


@pytest.mark.parametrize(
    "last", ["x", "-1", "1.5", "1_0", "٣", "9" * 29, str(2**96), "9" * 5000, "1 2", "0x1"]
)
async def test_an_id_that_no_stream_sent_is_refused(api: Api, autojump_clock: MockClock, last: str) -> None:
    assert (await api.refused(last_event_id=last)).startswith("Last-Event-ID: ")


async def test_a_replay_ends_with_its_device(api: Api, autojump_clock: MockClock) -> None:
    for number in range(9):
        await api.house.command(api.device, f"c{number}")
    stream = await api.open(last_event_id="0")
    assert len(parsed(await stream.next())) == 3
    await api.house.ask(api.device, devices.DeleteDevice())
    assert await stream.next() is None


async def test_more_may_come_during_a_replay_than_a_stream_keeps(api: Api, autojump_clock: MockClock) -> None:
    for number in range(6):
        await api.house.command(api.device, f"c{number}")
    stream = await api.open(last_event_id="0")
    seen = parsed(await stream.next())
    for number in range(6, 20):
        await api.house.command(api.device, f"c{number}")
    while len(seen) < 20:
        seen += parsed(await stream.next())
    await api.house.command(api.device, "c20")
    seen += parsed(await stream.next())
    assert [data["name"] for _, data in seen] == [f"c{number}" for number in range(21)]
    assert api.house.system.streams.slow_consumers == 0


# -- endings -------------------------------------------------------------------------------------------------


async def test_a_slow_reader_is_let_go_and_slows_nobody(api: Api, autojump_clock: MockClock) -> None:
    slow, fast = await api.open(), await api.open()
    for reader in (slow, fast):
        await reader.next()
    heard: list[str] = []
    for number in range(20):
        await api.house.command(api.device, f"c{number}")
        heard += names(await fast.next())
    assert heard == [f"c{number}" for number in range(20)]
    assert await slow.next() is None
    assert api.house.system.streams.slow_consumers == 1
    slow.close()
    slow.close()
    assert api.streams == 1
    assert await fast.next() == COMMENT


async def test_a_stream_ends_with_its_device(api: Api, autojump_clock: MockClock) -> None:
    stream = await api.open()
    await stream.next()
    await api.house.command(api.device, "last words")
    await api.house.ask(api.device, devices.DeleteDevice())
    assert await stream.next() is None
    stream.close()
    assert api.streams == 0


async def test_a_stream_ends_with_its_application(api: Api, autojump_clock: MockClock) -> None:
    stream, states = await api.open(), await api.open(resource="stateStream")
    ref = Ref("application", ROOT, api.house.application)
    for reader in (stream, states):
        await reader.next()
    await api.house.system.ask(ref, DeleteApplication())
    for reader in (stream, states):
        assert await reader.next() is None


async def test_a_stream_ends_when_its_key_is_switched_off(api: Api, autojump_clock: MockClock) -> None:
    stream = await api.open("keepAliveInterval=60")
    await stream.next()
    ref = Ref("application", ROOT, api.house.application)
    started_s = trio.current_time()
    async with trio.open_nursery() as nursery:

        async def switch_off() -> None:
            await trio.sleep(5)
            body = KeyPatch(status="inactive")
            await api.house.system.ask(
                ref, PatchRecord(resource="applicationKey", record=api.key, body=body, by=BY)
            )

        nursery.start_soon(switch_off)
        assert await stream.next() is None
    assert trio.current_time() - started_s == pytest.approx(5, abs=1e-6), "at once, not at the next comment"


async def test_a_stream_ends_when_its_token_expires(api: Api, autojump_clock: MockClock) -> None:
    started_s = trio.current_time()
    stream = await api.open("keepAliveInterval=60", ttl_s=90)
    await stream.next()
    assert await stream.next() == COMMENT
    assert await stream.next() is None
    assert trio.current_time() - started_s == pytest.approx(90, abs=0.002)


async def test_a_drain_sends_what_waits_and_ends_the_stream(api: Api, autojump_clock: MockClock) -> None:
    stream = await api.open()
    await stream.next()
    await api.house.command(api.device, "go")
    api.house.system.drain()
    assert names(await stream.next()) == ["go"]
    assert await stream.next() is None
    refused = await api.get()
    assert refused.status == 503
