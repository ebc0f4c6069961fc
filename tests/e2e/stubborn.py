"""Clients that repeat each call with its key until it is answered, whatever happens to the server; what it has kept.

Owns the calls that they make and how what is stored is compared with them. Does not own what happens to the server.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, Protocol

import trio

from tests.e2e.conftest import Server
from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.transport import Origin

COLUMNS = [{"name": "label", "dataType": "string", "constraint": "optional"}]
LIST_MAX, ROWS_MAX = 1000, 10_000
"""The longest lists that an answer has."""
AGAIN = frozenset({409, 502, 503})
"""Statuses after which the same call is made again: it is in work, or a process has died, or is not there."""


async def table(server: Server, application: str) -> str:
    body = {"name": "readings", "columns": COLUMNS}
    made = await server.call("POST", f"{application}/data-tables", body)
    return f"{application}/data-tables/{made['id']}"


async def history(server: Server, device: str, what: str) -> Any:
    """The states or commands of a device, all of them."""
    return _whole(await server.call("GET", f"{device}/{what}?limit={LIST_MAX}&since=1"), LIST_MAX)


def _whole(entries: list[Any], limit: int) -> list[Any]:
    assert len(entries) < limit, "there may be more"
    return entries


class Answering(Protocol):
    """A server that answers until its process has ended."""

    url: str
    token: str

    @property
    def process(self) -> Any: ...


class Stubborn:
    """A client that sends each call with a key of its own until it has an answer, across servers.

    Some answers are lost: the client drops the connection right after it has sent the call.
    """

    def __init__(self, name: str, calls: list[tuple[str, Any]], random: Random) -> None:
        self.left: list[tuple[str, bytes, str]] = []
        self.answers: list[bytes] = []
        self.repeated = 0
        self.last = "nothing was sent"
        self.again = AGAIN
        self.pause_s = 0.0
        """Before a call is made again."""
        self._name = name
        self._numbers = count()
        self._random = random
        self.add(calls)

    def add(self, calls: Iterable[tuple[str, Any]]) -> None:
        """More to send, behind what is left."""
        for path, body in calls:
            self.left.append((path, json.dumps(body).encode(), f'"{self._name}-{next(self._numbers)}"'))

    async def run(self, server: Answering) -> None:
        """Send until nothing is left, or the server has ended."""
        while self.left and server.process.returncode is None:
            path, body, key = self.left[0]
            headers = {"Idempotency-Key": key}
            origin = Origin.parse(server.url)
            async with Connection(origin, token=server.token, timeout_s=PATIENCE_S) as connection:
                try:
                    if self._random.random() < 0.2:
                        await self._drop(connection, connection.encode("POST", path, body, headers))
                    answer = await connection.request("POST", path, body, headers)
                except WireError as problem:
                    self.last = str(problem)
                    await trio.sleep(self.pause_s)
                    continue
            self.last = f"{answer.status} {answer.body!r}"
            if answer.status in self.again:
                await trio.sleep(self.pause_s)
                continue
            assert answer.status in (200, 201), (answer.status, answer.body)
            self.repeated += answer.headers.get("idempotent-replayed") == "true"
            self.answers.append(answer.body)
            self.left.pop(0)

    async def _drop(self, connection: Connection, call: bytes) -> None:
        await connection.connect()
        with trio.move_on_after(self._random.uniform(0, 0.003)):
            await connection.exchange(call)
        connection.close()


async def prepared(server: Server) -> tuple[str, str, str]:
    application = await server.application()
    return await prepared_in(server, application, await server.device(application))


async def prepared_in(server: Server, application: str, device: str) -> tuple[str, str, str]:
    """The same with an application that is there."""
    return application, device, await table(server, application)


def calls(paths: tuple[str, str, str], client: int, count: int) -> list[tuple[str, Any]]:
    application, device, rows = paths
    found: list[tuple[str, Any]] = []
    for number in range(count):
        mark = f"{client}-{number}"
        found.append(
            [
                (
                    f"{device}/state",
                    {"data": {"label": mark}, "time": 1_700_000_000_000 + 1000 * client + number},
                ),
                (
                    f"{device}/state",
                    [{"data": {"label": mark}, "time": 1_710_000_000_000 + 1000 * client + number}],
                ),
                (f"{device}/command", {"name": mark}),
                (f"{rows}/rows", {"label": mark}),
                (f"{rows}/rows", [{"label": mark}, {"label": f"{mark}'"}]),
                (f"{application}/events", {"level": "info", "state": "new", "subject": mark}),
                (f"{application}/devices/command", {"name": mark, "deviceIds": [device.rpartition("/")[2]]}),
            ][number % 7]
        )
    return found


async def read_back(server: Server, paths: tuple[str, str, str]) -> tuple[Counter[str], int]:
    """How often each mark is stored, and how many payloads of states were counted."""
    application, device, rows = paths
    marks = [each["data"]["label"] for each in await history(server, device, "state")]
    marks += [each["name"] for each in await history(server, device, "command")]
    stored = await server.call("GET", f"{rows}/rows?limit={ROWS_MAX}")
    marks += [each["label"] for each in _whole(stored["items"], ROWS_MAX)]
    events = await server.call("GET", f"{application}/events?perPage={LIST_MAX}")
    marks += [each["subject"] for each in _whole(events["items"], LIST_MAX)]
    counts = await server.call("GET", f"{device}/payloadCounts")
    return Counter(marks), counts["deviceState"]


@contextmanager
def patience(stubborn: list[Stubborn]) -> Iterator[None]:
    """Say what each client was told last, if it takes too long."""
    with trio.move_on_after(PATIENCE_S) as scope:
        yield
    assert not scope.cancelled_caught, [(len(each.left), each.last) for each in stubborn]


def sent_marks(clients: int, count: int) -> Counter[str]:
    """The marks of all calls that so many clients make, each once."""
    return Counter(
        mark
        for client in range(clients)
        for number in range(count)
        for mark in [f"{client}-{number}", *([f"{client}-{number}'"] if number % 7 == 4 else [])]
    )
