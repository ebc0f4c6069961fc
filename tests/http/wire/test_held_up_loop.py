"""A loop that was held up, as by a disk, for longer than the deadline of a connection."""

from __future__ import annotations

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked
from wsproto.events import Ping

from tests.http.other_protocols import h2_peer
from tests.http.raw_wire import application, echo, serving
from tests.http.wire.byte_sessions import passes
from tests.http.wire.websocket_sessions import BOUNDS, Accepting, opened
from trunkline.http.wire.engine import REAP_S
from trunkline.http.wire.timeouts import LATE_S

pytestmark = pytest.mark.usefixtures("silent")


@pytest.mark.parametrize("times", [1, 2])
async def test_an_answer_to_a_ping_counts_that_came_meanwhile(mock_clock: MockClock, times: int) -> None:
    """Whether the deadline or the answer is seen first is random, so there are several attempts."""
    accepting = Accepting(BOUNDS)
    async with serving(application(accepting)) as running:
        peer = await opened(running)
        for _ in range(20):
            await passes(mock_clock, BOUNDS.ping_interval_s)
            ping = await peer.next()
            assert isinstance(ping, Ping)
            for _ in range(times - 1):
                await wait_all_tasks_blocked()
                mock_clock.jump(3 * REAP_S)
            await wait_all_tasks_blocked()
            peer.stream.socket._sock.send(peer.wire.send(ping.response()))
            mock_clock.jump(BOUNDS.pong_timeout_s)
            await passes(mock_clock, 0)
            assert not accepting.sessions[0].ends


async def test_a_client_that_stays_silent_is_closed_nevertheless(mock_clock: MockClock) -> None:
    """Also where the loop is held up again and again."""
    accepting = Accepting(BOUNDS)
    async with serving(application(accepting)) as running:
        await opened(running)
        for _ in range(20):
            await wait_all_tasks_blocked()
            mock_clock.jump(BOUNDS.ping_interval_s)
        await accepting.sessions[0].over.wait()
        assert accepting.sessions[0].ends[0][0] == 4408


async def test_a_body_that_came_meanwhile_is_taken_on_http2(mock_clock: MockClock) -> None:
    """The task that reads the connection is another one than that which waits for the body."""
    limits = {"body_timeout_s": 20}
    async with serving(application(echo), http2_prior_knowledge=True, limits=limits) as wired:
        client = await h2_peer(wired, None)
        number = client.begin("POST", end=False)
        client.h2.send_data(number, b"begin")
        await client.ask()
        await wait_all_tasks_blocked()
        client.h2.send_data(number, b", end", end_stream=True)
        client.stream.socket._sock.send(client.h2.data_to_send())
        mock_clock.jump(20 + LATE_S)
        answer = await client.response(number)
        assert answer.status == 200
        assert b'"begin, end"' in answer.body
