"""A client that follows the states of an application while the server is killed again and again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import ServerProcess, serving
from tests.e2e.sse_client import Event, until
from tests.e2e.test_application_streams import id_of, said, states
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk


class _Follower:
    """A client that keeps its last id, and what it was told, over restarts of the server."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.last_id: str | None = None
        self.opened = trio.Event()

    def has(self, count: int) -> bool:
        """Whether it was told of so many events."""
        return len(self.events) >= count

    async def follow(self, server: Server, application: str, count: int | None = None) -> None:
        """Read until the server is gone, or so many events are there."""
        try:
            async with states(server, application, last_id=self.last_id) as stream:
                self.opened.set()
                while count is None or len(self.events) < count:
                    event = await stream.event()
                    if event is None:
                        return
                    self.events.append(event)
                    self.last_id = event.id
        except httpx.HTTPError:
            return


@pytest.mark.slow
async def test_a_client_resumes_over_kills_without_a_gap_and_without_a_double(tmp_path: Path) -> None:
    """States go on being sent while the client is away, and while the server dies."""
    data, follower = tmp_path / "data", _Follower()
    acknowledged: dict[str, list[int]] = {}
    sent: dict[str, int] = {}
    application = ""

    async def send(server: ServerProcess, device: str, count: int) -> None:
        async with server.client() as client:
            for _ in range(count):
                number = sent[device] = sent.get(device, 0) + 1
                try:
                    answer = await client.post(
                        f"{device}/state", json={"data": {"temp": number}, "time": number}
                    )
                except httpx.HTTPError:
                    return
                assert answer.status_code == 200
                acknowledged.setdefault(device, []).append(number)

    for life in range(4):
        async with serving(data, "--limits", "off") as server:
            if not application:
                application = await server.application()
                for number in range(5):
                    sent[await server.device(application, f"d{number}")] = 0
            before = len(follower.events)
            async with trio.open_nursery() as nursery:
                if life:
                    await send(server, next(iter(sent)), 10)  # nobody listens yet
                nursery.start_soon(follower.follow, server, application)
                await follower.opened.wait()
                for device in sent:
                    nursery.start_soon(send, server, device, 10_000)
                await until(partial(follower.has, before + 200))
                await server.kill()
    async with serving(data, "--limits", "off") as server:
        stored: dict[str, list[int]] = {}
        for device in sent:
            history = await server.call("GET", f"{device}/state", params={"limit": 1000})
            assert len(history) < 1000
            stored[id_of(device)] = sorted(each["data"]["temp"] for each in history)
        total = sum(map(len, stored.values()))
        with trio.fail_after(PATIENCE_S):
            await follower.follow(server, application, total)
    ids = [int(each.id) for each in follower.events]
    assert ids == sorted(set(ids))
    told: dict[str, list[int]] = {}
    for device_id, temp in said(follower.events):
        told.setdefault(device_id, []).append(int(temp))
    for device, numbers in acknowledged.items():
        assert told[id_of(device)] == sorted(told[id_of(device)])
        assert {*numbers} <= {*told[id_of(device)]}
    assert {device: len(each) for device, each in told.items()} == {
        device: len(each) for device, each in stored.items()
    }
