"""A loop that was held up, as by a disk, for longer than the deadline of a connection."""

from __future__ import annotations

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked
from wsproto.events import Ping

from tests.http.raw_wire import application, serving
from tests.http.wire.byte_sessions import passes
from tests.http.wire.websocket_sessions import BOUNDS, Accepting, opened
from trunkline.http.wire.engine import REAP_S

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
