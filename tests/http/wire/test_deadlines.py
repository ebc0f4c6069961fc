"""Time on the wire, under a clock of the test's own: slow heads, slow bodies, slow readers and idle clients."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.http.raw_wire import Receive, Scope, Send, application, echo, reply, serving, whole_body
from trunkline.http.wire.engine import REAP_S
from trunkline.http.wire.exchange_channel import HALF_CLOSED_S
from trunkline.http.wire.socket_transport import LINGER_S

pytestmark = pytest.mark.usefixtures("silent", "both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
LIMITS = {"head_timeout_s": 10, "body_timeout_s": 30, "write_timeout_s": 20, "connection_idle_s": 75}


async def passes(clock: MockClock, seconds: float) -> None:
    """Let time pass, and the reaper see it."""
    await wait_all_tasks_blocked()
    clock.jump(seconds)
    await wait_all_tasks_blocked()
    clock.jump(REAP_S)
    await wait_all_tasks_blocked()


async def test_a_connection_without_a_request_is_closed_in_silence(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        await passes(mock_clock, 9)
        assert wired.engine.connections == 1
        await passes(mock_clock, 1)
        assert await peer.rest() == b""
        assert (wired.engine.connections, wired.engine.timed_out) == (0, 1)


async def test_a_head_that_trickles_in_is_ended_with_408(mock_clock: MockClock) -> None:
    """However often a byte comes: the head has its time as a whole."""
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        for byte in (b"G", b"E", b"T", b" ", b"/"):
            await peer.send(byte)
            await passes(mock_clock, 1.5)
        answer = await peer.answer()
        assert answer is not None
        assert answer.error() == (408, "RequestTimeout")
        assert await peer.rest() == b""
        assert wired.engine.connections == 0


async def test_a_head_that_comes_in_time_is_answered(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        for _ in range(3):
            await peer.send(GET[:10])
            await passes(mock_clock, 9)
            assert (await peer.exchange(GET[10:])).status == 200
            await passes(mock_clock, 60)
        assert wired.engine.timed_out == 0


async def test_an_idle_connection_is_closed_after_its_time(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.exchange(GET)
        await passes(mock_clock, 74)
        await peer.exchange(GET)
        await passes(mock_clock, 74)
        assert wired.engine.connections == 1
        await passes(mock_clock, 1)
        assert await peer.rest() == b""


async def test_a_body_that_trickles_in_is_ended_with_408(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.send(POST)
        for byte in (b"h", b"e", b"l", b"l"):
            await passes(mock_clock, 7)
            await peer.send(byte)
        answer = await peer.answer()
        assert answer is not None
        assert answer.error() == (408, "RequestTimeout")
        assert await peer.rest() == b""


async def test_an_application_may_take_its_time_over_a_body(mock_clock: MockClock) -> None:
    """Only waiting for the client counts, and every MiB has the time to itself."""
    naps = trio.Semaphore(0)
    answered = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        size = 0
        more = True
        while more:
            message = await receive()
            more, size = message["more_body"], size + len(message["body"])
            naps.release()
            await trio.sleep(40)
        await reply(send, b"%d" % size)
        answered.set()

    async def wake() -> None:
        # Time passes only while the application sleeps: the kernel may be slow to hand over the body.
        while True:
            await naps.acquire()
            await passes(mock_clock, 40)

    async with serving(application(http), limits=LIMITS) as wired, trio.open_nursery() as nursery:
        peer = await wired.connect()
        size = 3 << 20
        await peer.send(b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        nursery.start_soon(peer.send, bytes(size))
        nursery.start_soon(wake)
        await answered.wait()
        nursery.cancel_scope.cancel()
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"%d" % size


async def test_each_mebibyte_of_a_body_has_the_time_to_itself(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.send(POST.replace(b"5", b"%d" % (3 << 20)))
        for _ in range(3):
            await passes(mock_clock, 20)
            await peer.send(bytes(1 << 20))
        answer = await peer.answer()
        assert answer is not None
        assert answer.status == 200


async def test_a_call_that_waits_is_not_timed_out_by_the_wire(mock_clock: MockClock) -> None:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await trio.sleep(3600)
        await reply(send, b"at last")

    async with serving(application(http), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        for _ in range(60):
            await passes(mock_clock, 60)
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"at last"


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    await reply(send, bytes(32 << 20))


async def test_a_client_that_never_reads_is_closed(mock_clock: MockClock) -> None:
    async with serving(application(large), limits=LIMITS) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET)
        await passes(mock_clock, 19)
        assert wired.engine.connections == 1
        await passes(mock_clock, 1)
        assert (wired.engine.connections, wired.engine.timed_out) == (0, 1)


async def test_a_slow_reader_gets_all_of_a_long_answer(mock_clock: MockClock) -> None:
    """It takes many times the write time-out, but gets on within each."""
    async with serving(application(large), limits=LIMITS) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET)
        taken = 0
        while taken < 32 << 20:
            for _ in range(40):
                data = await peer.stream.receive_some(65_536)
                assert data
                taken += len(data)
                if taken >= 32 << 20:
                    break
            await passes(mock_clock, 15)
        assert wired.engine.timed_out <= 1  # idle at the end


@pytest.mark.parametrize("taken_bytes", [1, 12_000])
async def test_a_reader_that_takes_next_to_nothing_is_closed(mock_clock: MockClock, taken_bytes: int) -> None:
    """A few bytes now and then keep nothing open; the segments are small, so that the server sees each."""
    async with serving(application(large), limits=LIMITS) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536, segment_bytes=1000)
        await peer.send(GET)
        for _ in range(6):
            await passes(mock_clock, 5)
            try:
                await peer.stream.receive_some(taken_bytes)
            except trio.BrokenResourceError:
                break
        assert (wired.engine.connections, wired.engine.timed_out) == (0, 1)


async def test_what_a_client_does_not_read_stays_out_of_the_systems_buffers() -> None:
    """Without a bound each such client costs the megabytes of a send buffer that grew by itself."""
    written = 0

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal written
        await reply(send, b"", more=True)
        for _ in range(1000):
            await send({"type": "http.response.body", "body": bytes(16_384), "more_body": True})
            written += 16_384

    async with serving(application(http)) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET)
        await wait_all_tasks_blocked()
        assert 0 < written < 1 << 20


async def test_a_stream_that_is_not_read_ends_with_its_client(mock_clock: MockClock) -> None:
    """The application's send is cancelled with the connection, so what it holds is given back."""
    ended = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await reply(send, b"", more=True)
            while True:
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
        finally:
            ended.set()

    async with serving(application(http), limits=LIMITS) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET)
        await passes(mock_clock, 20)
        assert ended.is_set()
        assert wired.engine.connections == 0


async def test_a_client_that_never_closes_is_left_soon(mock_clock: MockClock) -> None:
    async with serving(application(echo), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.exchange(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await wait_all_tasks_blocked()
        assert wired.engine.connections == 1
        await passes(mock_clock, LINGER_S)
        assert wired.engine.connections == 0


async def test_an_application_that_does_not_let_itself_be_ended_is_timed_out_once(
    mock_clock: MockClock,
) -> None:
    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        with trio.CancelScope(shield=True):
            await whole_body(receive)
        await reply(send, b"all the same")

    async with serving(application(http), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.send(POST)
        for _ in range(4):
            await passes(mock_clock, 30)
        assert wired.engine.timed_out == 1
        await peer.send(b"hello")
        answer = await peer.answer()
        assert answer is not None
        assert answer.body == b"all the same"
        assert await peer.rest() == b""


async def test_half_closed_and_nothing_to_come(mock_clock: MockClock) -> None:
    """A call that does not answer in a moment is over when its client may have left."""
    told = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        await whole_body(receive)
        assert (await receive())["type"] == "http.disconnect"
        told.set()

    async with serving(application(http), limits=LIMITS) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        await peer.half_close()
        await wait_all_tasks_blocked()
        assert not told.is_set()
        await passes(mock_clock, HALF_CLOSED_S)
        assert told.is_set()
        assert await peer.rest() == b""
