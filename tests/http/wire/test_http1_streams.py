"""Long answers on the wire: backpressure, the turn of the others, and clients that leave or wait."""

from __future__ import annotations

import pytest
import trio

from tests.http.raw_wire import Receive, Scope, Send, application, part, reply, serving, until_disconnect
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("both_transports")

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_a_stream_waits_for_its_reader_and_holds_little(silent: object) -> None:
    """The application is held back as soon as the buffers of the two sockets are full."""
    sent = 0
    size, pieces = 1 << 16, 400

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await reply(send, b"", more=True)
        for _ in range(pieces):
            await send(part(bytes(size), more=True))
            sent += 1
        await send(part(b""))

    async with serving(application(http)) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET)
        await trio.testing.wait_all_tasks_blocked()
        assert sent < pieces // 2
        received = 0
        while sent < pieces or received < size * pieces:
            received += len(await peer.stream.receive_some(1 << 20))


async def test_an_answer_that_the_application_breaks_off_is_the_last(silent: object) -> None:
    """Half of it is on the wire: a client would take the next answer for its rest."""

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reply, send, bytes(32 << 20))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    async with serving(application(http)) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        await peer.send(GET * 2)
        await trio.testing.wait_all_tasks_blocked()
        received = await peer.rest()
        assert received.count(b"HTTP/1.1") == 1
        assert len(received) < 32 << 20


async def test_a_part_whose_sending_was_broken_off_leaves_before_the_next_one(silent: object) -> None:
    """An application may give up a send that takes long, and go on: no byte of the answer is missing."""
    size = 32 << 20

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_first, send)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await send(part(b"the end"))

    async def send_first(send: Send) -> None:
        await reply(send, bytes(size), headers=[(b"content-length", b"%d" % (size + 7))], more=True)

    async with serving(application(http)) as wired:
        peer = await wired.connect(receive_buffer_bytes=65_536)
        for _ in range(2):
            answer = await peer.exchange(GET)
            assert answer.body == bytes(size) + b"the end"


async def test_a_stream_into_a_fast_reader_leaves_the_others_their_turn(silent: object) -> None:
    done = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/done":
            done.set()
            await reply(send, b"done")
            return
        await reply(send, b"", more=True)
        while not done.is_set():
            # HEAD: nothing is ever written, so nothing but the engine makes this task wait.
            await send(part(b"x", more=True))
        await send(part(b""))

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        await peer.send(GET.replace(b"GET", b"HEAD"))
        assert (await wired.ask(GET.replace(b"/a", b"/done"))).body == b"done"


@pytest.mark.parametrize(("engine", "ending"), [("fast", "reset"), ("stock", "reset"), ("stock", "close")])
async def test_a_client_that_leaves_ends_the_call_that_waits(
    silent: object, engine: str, ending: str
) -> None:
    entered, left = trio.Event(), trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        entered.set()
        await until_disconnect(receive)
        left.set()

    async with serving(application(http), engine) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        await entered.wait()
        await getattr(peer, ending)()
        with trio.fail_after(PATIENCE_S):
            await left.wait()


async def test_a_client_that_leaves_a_stream_is_no_fault_of_anybody(silent: object) -> None:
    """The stream ends with an OSError inside the application's own nursery; nothing is logged."""
    ended = trio.Event()

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with trio.open_nursery():
                await reply(send, b"", more=True)
                while True:
                    await send(part(bytes(1000), more=True))
        finally:
            ended.set()

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        await peer.send(GET)
        await peer.head()
        await peer.reset()
        with trio.fail_after(PATIENCE_S):
            await ended.wait()
        await wired.deserted()


async def test_a_call_is_over_when_its_answer_is(silent: object) -> None:
    """An application that listens for the client beside its answer is told, and the connection goes on."""

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_disconnect, receive)
            await trio.testing.wait_all_tasks_blocked()
            await reply(send, b"one", more=True)
            await send(part(b""))
        assert (await receive())["type"] == "http.disconnect"

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        for _ in range(3):
            assert (await peer.exchange(GET)).body == b"one"


async def test_a_client_that_closes_its_sending_half_gets_the_answers_it_waits_for(silent: object) -> None:
    """Also where an application says later that the answer is complete, and hears of the client before that."""

    async def http(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            async def listen() -> None:
                await until_disconnect(receive)
                nursery.cancel_scope.cancel()

            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            await reply(send, scope["path"].encode(), headers=[(b"content-length", b"2")], more=True)
            if scope["path"] == "/a":
                await trio.sleep_forever()
            await send(part(b""))

    async with serving(application(http)) as wired:
        peer = await wired.connect()
        await peer.send(GET + GET.replace(b"/a", b"/b") + GET.replace(b"/a", b"/c"))
        bodies = [(await peer.exchange()).body]
        await peer.half_close()
        bodies += [answer.body for _ in range(2) if (answer := await peer.answer())]
        assert bodies == [b"/a", b"/b", b"/c"]
        assert await peer.rest() == b""
