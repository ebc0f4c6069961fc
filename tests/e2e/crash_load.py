"""A load of every kind of write, the record of its acknowledgements, and their check against the server.

Owns what a crash test compares: states, commands, connection status and records are written on several connections at
the same time; acknowledged writes are recorded with their values; writes in progress when the server was killed are
recorded as unknown, and may be stored completely or not at all. Does not own killing the server.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sized
from dataclasses import dataclass, field
from random import Random
from typing import Any

import trio

from tests.patience import PATIENCE_S
from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.history import to_iso, to_ms
from trunkline.bench.session import Session

Json = dict[str, Any]
Point = tuple[str, str]
"""Time and data of a state, as text that can be compared."""

ATTRIBUTES = [
    {"name": "temp", "dataType": "number"},
    {"name": "label", "dataType": "string"},
    {"name": "on", "dataType": "boolean"},
]
VOLATILE = ("lastUpdated", "_etag", "secret", "token", "_links", "connectionInfo")
"""Fields whose value in a read may differ from that in the response that created or changed the record."""

FIRST_MS = 1_700_000_000_000
LAST_MS = 2_000_000_000_000
READ_LIMIT = 1000


@dataclass
class Books:
    """The writes to one server and their results. Lists are in the order of sending."""

    application: str = ""
    states: dict[str, list[list[Point]]] = field(default_factory=dict)
    commands: dict[str, list[Json]] = field(default_factory=dict)
    logs: dict[str, list[int]] = field(default_factory=dict)
    records: dict[str, dict[str, Json | None]] = field(default_factory=dict)
    """By list and id: the record as last acknowledged, None if its deletion was acknowledged."""
    bearers: list[tuple[str, str]] = field(default_factory=list)
    """Acknowledged tokens, and a path that each may read."""
    unknown: list[tuple[str, Any]] = field(default_factory=list)
    """Writes in progress, by the path that they were sent to."""
    acknowledged: int = 0

    def under_way(self, path: str) -> list[Any]:
        """The writes that were sent to `path` and not answered."""
        return [sent for place, sent in self.unknown if place == path]


class Load:
    """Eight writers, each on its own connection, until the server is gone."""

    def __init__(self, url: str, token: str, seed: int, *, label_chars: int = 10) -> None:
        self.books = Books()
        self._session = Session(url, token=token, timeout_s=PATIENCE_S)
        self._seed = seed
        self._label_chars = label_chars
        self._reached: dict[int, trio.Event] = {}

    async def prepare(self) -> None:
        """Make the application and the devices that are written to."""
        books = self.books
        books.application = "/applications/" + await self._session.create_application(f"round {self._seed}")
        path = f"{books.application}/devices"
        known = books.records.setdefault(path, {})
        written: tuple[dict[str, list[Any]], ...] = (books.states, books.commands, books.logs)
        for book in written:
            for number in range(2):
                body = {"name": f"{len(known)}-{number}", "attributes": ATTRIBUTES}
                made = await self._session.call("POST", path, body)
                known[made["id"]] = made
                book[f"{path}/{made['id']}"] = []
        books.acknowledged = 7

    async def reached(self, count: int) -> None:
        """Wait until so many writes are acknowledged."""
        event = self._reached.setdefault(count, trio.Event())
        if self.books.acknowledged < count:
            await event.wait()

    async def run(self) -> None:
        """Write until the server is gone. Any response that is not a success fails the test."""
        books = self.books
        writers: list[Callable[[Connection, Random], Awaitable[None]]] = []
        for number, device in enumerate(books.states):
            writers += [self._writer(self._send_states, device, number)]
        for device in books.commands:
            writers += [self._writer(self._send_commands, device, 0)]
        for device in books.logs:
            writers += [self._writer(self._set_status, device, 0)]
        for path, number in ((f"{books.application}/devices", 0), (f"{books.application}/keys", 1)):
            writers += [self._writer(self._keep_records, path, number)]
        writers += [self._writer(self._make_tokens, books.application, 0)]
        async with trio.open_nursery() as nursery:
            for number, writer in enumerate(writers):
                nursery.start_soon(self._work, writer, number)
        self._session.close()

    def _writer(self, work: Any, path: str, number: int) -> Callable[[Connection, Random], Awaitable[None]]:
        async def writer(connection: Connection, random: Random) -> None:
            await work(connection, random, path, number)

        return writer

    async def _work(self, writer: Callable[[Connection, Random], Awaitable[None]], number: int) -> None:
        async with Connection(
            self._session.origin, token=self._session.token, timeout_s=PATIENCE_S
        ) as connection:
            try:
                await writer(connection, Random(f"{self._seed}-{number}"))
            except WireError:
                return

    async def _write(
        self, connection: Connection, method: str, path: str, body: Any, book: str | None = None
    ) -> Any:
        """Make one write; returns its response, or raises WireError with the write recorded as unknown under `book`."""
        raw = None if body is None else json.dumps(body).encode()
        try:
            response = await connection.request(method, path, raw)
        except WireError:
            self.books.unknown.append((book or path, body))
            raise
        if response.status == 503 and b"nothing of this call was stored" in response.body:
            raise WireError("The server is stopping.", maybe_done=False)
        assert response.status in (200, 201), (method, path, response.status, response.body)
        self.books.acknowledged += 1
        event = self._reached.get(self.books.acknowledged)
        if event is not None:
            event.set()
        return json.loads(response.body)

    # The writers.

    async def _send_states(self, connection: Connection, random: Random, device: str, offset: int) -> None:
        """One state or some hundred in a call, some as a backlog; a call is stored whole or not at all."""
        time_ms = FIRST_MS + offset
        while True:
            states: list[Json] = []
            for _ in range(random.choice((1, 1, 1, 2, 100))):
                time_ms += random.randint(1, 2000)
                label = f"{random.getrandbits(32):x}é" * (1 + self._label_chars // 10)
                data = {"temp": random.uniform(-50, 50), "label": label, "on": random.random() < 0.5}
                states.append({"time": time_ms, "data": data})
            points = [(to_iso(state["time"]), _text(state["data"])) for state in states]
            path = f"{device}/state" + random.choice(("", "", "?backlog=true"))
            try:
                await self._write(connection, "POST", path, states if len(states) > 1 else states[0])
            except WireError:
                self.books.unknown.append((device, points))
                raise
            self.books.states[device].append(points)

    async def _send_commands(self, connection: Connection, random: Random, device: str, _: int) -> None:
        number = 0
        while True:
            number += 1
            payload = {"n": number, "nested": [random.random(), None, {"text": "ü" * random.randint(0, 50)}]}
            command = {"name": f"c{number}", "payload": payload}
            await self._write(connection, "POST", f"{device}/command", command, device)
            self.books.commands[device].append(command)

    async def _set_status(self, connection: Connection, random: Random, device: str, _: int) -> None:
        time_ms = FIRST_MS
        while True:
            time_ms += random.randint(1, 1000)
            body = {"status": "connected", "connectedAt": time_ms}
            await self._write(connection, "POST", f"{device}/setConnectionStatus", body, device)
            self.books.logs[device].append(time_ms)

    async def _keep_records(self, connection: Connection, random: Random, path: str, _: int) -> None:
        """Create, change and delete records of one list."""
        known = self.books.records.setdefault(path, {})
        living: list[str] = []
        number = 0
        while True:
            number += 1
            choice = random.random()
            name = f"record {self._seed}-{number}"
            if choice < 0.6 or len(living) < 3:
                made = await self._write(connection, "POST", path, {"name": name, "description": "ä" * 20})
                known[made["id"]] = made
                living.append(made["id"])
            elif choice < 0.85:
                id = random.choice(living)
                changed = await self._write(connection, "PATCH", f"{path}/{id}", {"name": name})
                known[id] = changed
            else:
                id = living.pop(random.randrange(len(living)))
                await self._write(connection, "DELETE", f"{path}/{id}", None)
                known[id] = None

    async def _make_tokens(self, connection: Connection, random: Random, application: str, _: int) -> None:
        number = 0
        while True:
            number += 1
            path, reads = random.choice(((f"{application}/tokens", application), ("/me/tokens", "/me")))
            made = await self._write(connection, "POST", path, {"name": f"token {self._seed}-{number}"})
            self.books.records.setdefault(path, {})[made["id"]] = made
            self.books.bearers.append((made["token"], reads))


async def audit(url: str, token: str, books: Books) -> int:
    """Read everything back through the API and compare; returns how many facts were found as acknowledged."""
    session = Session(url, token=token, timeout_s=PATIENCE_S)
    async with trio.open_nursery() as nursery:
        for check in (_audit_states, _audit_commands, _audit_logs, _audit_records, _audit_bearers):
            nursery.start_soon(check, session, books)
    session.close()
    found = sum(len(points) for calls in books.states.values() for points in calls)
    rest: tuple[Mapping[str, Sized], ...] = (books.commands, books.logs, books.records)
    for book in rest:
        found += sum(len(facts) for facts in book.values())
    return found


async def read_states(session: Session, device: str) -> list[Point]:
    """The whole history of a device, oldest first."""
    stored: list[Point] = []
    query: dict[str, Any] = {"start": 2, "end": LAST_MS, "limit": READ_LIMIT, "sortDirection": "asc"}
    while True:
        page = await session.call("GET", f"{device}/state", query=query)
        fresh = [(state["time"], _text(state["data"])) for state in page]
        stored += [point for point in fresh if not stored or point[0] > stored[-1][0]]
        if len(page) < READ_LIMIT:
            return stored
        query["start"] = to_ms(stored[-1][0])


async def read_commands(session: Session, device: str) -> list[Json]:
    """The command log of a device, oldest first."""
    page = await _page(session, f"{device}/command")
    return [{"name": each["name"], "payload": each["payload"]} for each in page]


async def _page(session: Session, path: str) -> list[Json]:
    query = {"start": 2, "end": LAST_MS, "limit": READ_LIMIT, "sortDirection": "asc"}
    page: list[Json] = await session.call("GET", path, query=query)
    assert len(page) < READ_LIMIT, "the load is larger than what the audit reads"
    return page


async def _audit_states(session: Session, books: Books) -> None:
    for device, calls in books.states.items():
        stored = await read_states(session, device)
        expected = [point for points in calls for point in points]
        (under_way,) = books.under_way(device) or [[]]
        assert stored in (expected, [*expected, *under_way]), _difference(stored, expected, device)
        counts = await session.call("GET", f"{device}/payloadCounts")
        assert counts["deviceState"] == len(stored), (device, counts, len(stored))


async def _audit_commands(session: Session, books: Books) -> None:
    for device, expected in books.commands.items():
        stored = await read_commands(session, device)
        assert stored in (expected, expected + books.under_way(device)), _difference(stored, expected, device)


async def _audit_logs(session: Session, books: Books) -> None:
    for device, expected in books.logs.items():
        stored = [to_ms(each["time"]) for each in await _page(session, f"{device}/logs")]
        under_way = [body["connectedAt"] for body in books.under_way(device)]
        assert stored in (expected, expected + under_way), _difference(stored, expected, device)


async def _audit_records(session: Session, books: Books) -> None:
    for path, known in books.records.items():
        listed: dict[str, Json] = {item["id"]: item async for item in session.items(path)}
        expected = {id: _settled(doc) for id, doc in known.items() if doc is not None}
        names = {body["name"] for body in books.under_way(path)}
        for id, doc in listed.items():
            if id not in known:
                # The user's own tokens are also those of other rounds.
                assert doc["name"] in names or path == "/me/tokens", (path, id, "was never sent")
            elif _settled(doc) != expected.get(id):
                # Only writes in progress may explain a difference.
                changes = books.under_way(f"{path}/{id}")
                assert {**(expected.get(id) or {}), **(changes[0] or {})} == _settled(doc), (path, id, doc)
        for id in expected:
            assert id in listed or None in books.under_way(f"{path}/{id}"), (path, id, "is lost")


async def _audit_bearers(session: Session, books: Books) -> None:
    for bearer, path in books.bearers:
        async with Connection(session.origin, token=bearer, timeout_s=PATIENCE_S) as connection:
            response = await connection.request("GET", path)
            assert response.status == 200, (path, response.status, response.body)


def _settled(doc: Json | None) -> Json:
    return {name: value for name, value in (doc or {}).items() if name not in VOLATILE}


def _text(data: Json) -> str:
    return json.dumps(data, sort_keys=True)


def _difference(stored: list[Any], expected: list[Any], what: str) -> str:
    lost = [each for each in expected if each not in stored]
    strange = [each for each in stored if each not in expected]
    return f"{what}: {len(lost)} lost {lost[:3]}, {len(strange)} never acknowledged {strange[:3]}"
