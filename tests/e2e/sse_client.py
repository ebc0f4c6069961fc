"""A client of event streams that is independent of the server's code, and a helper that waits for a condition."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import trio

from tests.e2e.conftest import Server
from tests.patience import PATIENCE_S


class Event(NamedTuple):
    """One event of a stream, or a comment (`name` is empty then)."""

    name: str
    id: str
    data: Any


class EventReader:
    """An open stream."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = response.headers
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """The next event or comment; None if the server has ended the stream."""
        fields: dict[str, str] = {}
        with trio.fail_after(PATIENCE_S):
            async for line in self._lines:
                if line.startswith(":"):
                    fields["comment"] = line[1:]
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "event" in fields:
                    return Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
                elif fields:
                    return Event("", "", None)
        return None

    async def event(self) -> Event | None:
        """The next event, without comments; None at the end."""
        while (found := await self.next()) is not None:
            if found.name:
                return found
        return None

    async def names(self, count: int) -> list[str]:
        """The names of the next commands."""
        found = [await self.event() for _ in range(count)]
        return [event.data["name"] for event in found if event is not None]


@asynccontextmanager
async def opened_stream(
    server: Server,
    device: str,
    *,
    resource: str = "commandStream",
    query: str = "",
    token: str | None = None,
    last_id: str | None = None,
) -> AsyncIterator[EventReader]:
    """Open a stream of a device; when this returns it is subscribed and its first comment is read."""
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    async with (
        server.client(token) as client,
        client.stream("GET", f"{device}/{resource}?{query}", headers=headers) as response,
    ):
        assert response.status_code == 200, await response.aread()
        yield EventReader(response)


async def until(condition: Callable[[], bool], pause_s: float = 0.001) -> None:
    """Wait until the condition holds. Each look takes the interpreter from threads of the server that compute."""
    with trio.fail_after(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what the server does by itself has no event to wait for
            await trio.sleep(pause_s)
