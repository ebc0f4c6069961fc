"""What has come behind a waiting call is parsed before what comes later, whenever the answers between are delivered."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.http.raw_wire import serving
from tests.http.wire.test_delivery import GET, TEXT, Listening

pytestmark = pytest.mark.usefixtures("both_transports")

ROUNDS = 20
"""In half of them the answer is delivered before the task of the connection sleeps: Trio decides that."""


async def test_an_answer_that_is_delivered_at_once_does_not_let_a_later_request_overtake() -> None:
    """The first request was parsed with the call, the second came while that waited, the third after the answer."""
    app = Listening()
    async with serving(app, fast_path=app) as wired:
        for _ in range(ROUNDS):
            app.released = trio.Event()
            peer = await wired.connect()
            await peer.send(b"GET /asgi HTTP/1.1\r\nHost: x\r\n\r\n" + GET % 1)
            await wait_all_tasks_blocked()
            await peer.send(GET % 2)
            await wait_all_tasks_blocked()
            app.released.set()
            bodies = []
            for number in (1, 2, 3):
                target, deliver = await app.next()
                deliver(200, TEXT, target)
                await wait_all_tasks_blocked()
                if number == 1:
                    await peer.send(GET % 3)
            for _ in range(4):
                answer = await peer.answer()
                assert answer is not None
                bodies.append(answer.body)
            assert bodies == [b"asgi", b"/1", b"/2", b"/3"]
