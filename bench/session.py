"""A signed-in client of the API: JSON calls, login, creating what a load needs, reading everything back.

Owns the calls that are not themselves measured. Waits politely where the server says "later" (429, 503) and
turns error bodies into typed errors. Does not own pacing of a load, nor what the records mean to a
scenario.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec
import trio

from trunkline.bench.client import REQUEST_TIMEOUT_S, Connection
from trunkline.bench.errors import ApiError, BenchError, TryLater, WireError, api_error
from trunkline.bench.framing import Response
from trunkline.bench.transport import Origin

CONNECTIONS_MAX = 16
"""Connections: set-up and read-back together; more of them only wait in the server."""

PATIENCE_S = 60.0
"""Seconds: how long a call is repeated while the server says "later", or (reads only) is not reachable."""

RETRY_PAUSE_S = 0.5
"""Seconds: between two tries where the server names no time."""

PAGE_ITEMS = 1000
"""Records a page: the most the API gives at once."""

Json = dict[str, Any]


class Session:
    """Calls to one server with one token, over a few keep-alive connections that are opened as needed."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        connections_max: int = CONNECTIONS_MAX,
        patience_s: float = PATIENCE_S,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self.url = url
        self.origin = Origin.parse(url)
        self.token = token
        self.connections_max = connections_max
        self.patience_s = patience_s
        self.timeout_s = timeout_s
        self._free: list[Connection] = []
        self._slots = trio.CapacityLimiter(connections_max)

    async def login(self, email: str, password: str, *, two_factor_code: str | None = None) -> str:
        """Sign in, keep the token and return it; raises Unauthorized."""
        body = {"email": email, "password": password}
        if two_factor_code is not None:
            body["twoFactorCode"] = two_factor_code
        self.token = None
        # A login is not repeated: the person at the terminal should hear at once that nobody answers.
        response = await self.fetch("POST", "/auth/user", body, patience_s=0)
        token = msgspec.json.decode(response.body, type=dict[str, Any]).get("token")
        if not isinstance(token, str) or not token:
            raise BenchError("The server accepted the login and gave no token.")
        self.token = token
        return token

    async def call(
        self, method: str, path: str, body: object = None, *, query: Mapping[str, object] | None = None
    ) -> Any:
        """One call, decoded from JSON (None where the answer has no body); raises ApiError or WireError.

        Repeats for up to ``patience_s`` what the server refused with 429 or 503, and a GET whose connection
        failed.
        """
        response = await self.fetch(method, path, body, query=query)
        return msgspec.json.decode(response.body) if response.body else None

    async def fetch(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        patience_s: float | None = None,
    ) -> Response:
        """As ``call``, but the answer as it came, and with a patience of its own where one is given."""
        target = f"{path}?{urlencode(query)}" if query else path
        raw = None if body is None else msgspec.json.encode(body)
        give_up_s = trio.current_time() + (self.patience_s if patience_s is None else patience_s)
        while True:
            try:
                async with self.connection() as connection:
                    response = await connection.request(method, target, raw)
                if response.status < 400:
                    return response
                raise refusal(response)
            except TryLater as refused:
                pause_s = RETRY_PAUSE_S if refused.retry_after_s is None else refused.retry_after_s
                if trio.current_time() + pause_s > give_up_s:
                    raise
            except WireError as problem:
                pause_s = RETRY_PAUSE_S
                safe = method in ("GET", "HEAD") or not problem.maybe_done
                if not safe or trio.current_time() + pause_s > give_up_s:
                    raise
            await trio.sleep(pause_s)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for this task alone; waits while all are in use."""
        async with self._slots:
            connection = self._free.pop() if self._free else Connection(self.origin, timeout_s=self.timeout_s)
            connection.token = self.token
            try:
                yield connection
            finally:
                self._free.append(connection)

    def close(self) -> None:
        """Drop the idle connections."""
        while self._free:
            self._free.pop().close()

    async def create_application(self, name: str, description: str = "") -> str:
        """Create an application; its id."""
        body = {"name": name, "description": description} if description else {"name": name}
        return record_id(await self.call("POST", "/applications", body))

    async def create_devices(self, application_id: str, devices: Sequence[Json]) -> list[str]:
        """Create many devices, a few at a time; their ids in the order given."""
        ids = [""] * len(devices)
        waiting = iter(enumerate(devices))

        async def create_next() -> None:
            for index, device in waiting:
                ids[index] = record_id(
                    await self.call("POST", f"/applications/{application_id}/devices", device)
                )

        async with trio.open_nursery() as nursery:
            for _ in range(min(self.connections_max, len(devices))):
                nursery.start_soon(create_next)
        return ids

    async def items(self, path: str, *, query: Mapping[str, object] | None = None) -> AsyncIterator[Json]:
        """Every record of a list, page by page."""
        page, seen = 0, 0
        while True:
            answer = await self.call(
                "GET", path, query={**(query or {}), "page": page, "perPage": PAGE_ITEMS}
            )
            records: list[Json] = answer["items"]
            for record in records:
                yield record
            seen += len(records)
            page += 1
            if not records or seen >= int(answer["totalCount"]):
                return

    async def find_application(self, name: str) -> str | None:
        """The id of the first application of exactly this name, or None."""
        async for record in self.items("/applications", query={"filterField": "name", "filter": name}):
            if record.get("name") == name:
                return record_id(record)
        return None

    async def find_devices(self, application_id: str) -> dict[str, Json]:
        """The devices of an application by name; of several with one name the first."""
        found: dict[str, Json] = {}
        async for record in self.items(f"/applications/{application_id}/devices", query={"sortField": "id"}):
            found.setdefault(str(record.get("name")), record)
        return found


def record_id(record: Json) -> str:
    """The id of a record that the server returned."""
    value = record.get("id")
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{24}", value):
        raise BenchError(f"The server returned a record without an id: {sorted(record)}.")
    return value


def device_path(application_id: str, device_id: str, tail: str = "") -> str:
    """The path of a device, or of what lies under it."""
    return f"/applications/{application_id}/devices/{device_id}{tail}"


def refusal(response: Response) -> ApiError:
    """The error that an answer with a status from 400 carries, also where its body is not the API's."""
    type_, message = "Unknown", response.body[:200].decode("utf-8", "replace")
    try:
        body = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    if isinstance(body, dict):
        type_, message = str(body.get("type", type_)), str(body.get("message", message))
    return api_error(response.status, type_, message, retry_after_s=retry_after_s(response))


def retry_after_s(response: Response) -> float | None:
    """Seconds that the answer asks to wait, or None."""
    text = response.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d+)?", text) else None
