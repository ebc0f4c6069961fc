"""Sessions of WebSockets: what they send arrives, and what fails in one ends its connection only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from wsproto.events import BytesMessage, TextMessage

from tests.e2e.sse_client import until
from tests.http.raw_wire import Wired, application, serving
from tests.http.wire.websocket_sessions import Accepting, Echo, opened

pytestmark = pytest.mark.usefixtures("silent", "both_transports")


@pytest.fixture
async def accepting() -> Accepting:
    return Accepting()


@pytest.fixture
async def wired(accepting: Accepting) -> AsyncIterator[Wired]:
    async with serving(application(accepting)) as running:
        yield running


async def test_what_is_sent_while_the_task_looks_for_input_arrives(
    wired: Wired, accepting: Accepting
) -> None:
    """Then nobody is woken for it. Which task comes first is random, so there are several attempts."""
    for _ in range(20):
        peer = await opened(wired)
        await wait_all_tasks_blocked()
        socket = accepting.sessions[-1].socket
        assert socket is not None
        socket._transport.mark_readable()
        socket._transport.wake()
        await trio.lowlevel.checkpoint()
        socket.send(bytes(4 << 20))
        assert (await peer.next()).data == bytes(4 << 20)


async def test_a_bug_in_a_session_ends_its_connection_only(
    wired: Wired, accepting: Accepting, log: list[dict[str, Any]]
) -> None:
    other = await opened(wired)
    failing = await opened(wired)
    await failing.send(TextMessage(data="fail"))
    assert (await failing.next()).code == 1011
    assert accepting.sessions[1].ends == [(1011, "the server failed; the fault is logged")]
    await other.send(BytesMessage(data=b"still there"))
    assert (await other.next()).data == b"still there"
    assert [entry["event"] for entry in log] == ["websocket failed"]
    log.clear()


@pytest.mark.parametrize("name", ["opened", "flushed", "drain"])
async def test_a_bug_in_any_callback_ends_its_connection_only(
    name: str, wired: Wired, accepting: Accepting, log: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await opened(wired)
    accepting.sessions[0].drain = lambda: None  # type: ignore[method-assign]

    def fail(*_: object) -> None:
        raise RuntimeError("a bug of the session")

    monkeypatch.setattr(Echo, name, fail)
    failing = await opened(wired)
    if name == "flushed":
        socket = accepting.sessions[1].socket
        assert socket is not None
        socket.send(bytes(4 << 20))
        assert (await failing.next()).data == bytes(4 << 20)
    if name == "drain":
        wired.drain()
    assert (await failing.next()).code == 1011
    monkeypatch.undo()
    await other.send(BytesMessage(data=b"still there"))
    assert (await other.next()).data == b"still there"
    assert [entry["event"] for entry in log] == ["websocket failed"]
    log.clear()


async def test_a_bug_at_the_end_of_a_session_harms_nobody(
    wired: Wired, accepting: Accepting, log: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end may be found by what looks after the deadlines of all."""

    def fail(*_: object) -> None:
        raise RuntimeError("a bug of the session")

    await opened(wired)
    socket = accepting.sessions[0].socket
    assert socket is not None
    monkeypatch.setattr(accepting.sessions[0], "closed", fail)
    socket.close_at(0, 4000, "now")
    await until(lambda: not socket.open)
    other = await opened(wired)
    await other.send(BytesMessage(data=b"still there"))
    assert (await other.next()).data == b"still there"
    assert [entry["event"] for entry in log] == ["websocket failed"]
    log.clear()
