"""A signed-in client of the API: JSON calls, login, creating what a load needs, reading everything back.

Owns the calls that are not measured. Waits and repeats after 429 and 503, and turns error bodies into typed
errors. Does not own pacing of a load, nor the meaning of the records.
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
"""Connections for set-up and reading back together; more would only wait in the server."""

PATIENCE_S = 60.0
"""Seconds: how long a call is repeated after 429 or 503 or, if that is safe, after a failed connection."""

RETRY_PAUSE_S = 0.5
"""Seconds: between two attempts if the server sends no Retry-After."""

PAGE_ITEMS = 1000
"""Records a page: the maximum of the API."""

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
        # A login is not repeated: the user should see at once that the server does not answer.
        response = await self.fetch("POST", "/auth/user", body, patience_s=0)
        token = msgspec.json.decode(response.body, type=dict[str, Any]).get("token")
        if not isinstance(token, str) or not token:
            raise BenchError("The server accepted the login and gave no token.")
        self.token = token
        return token

    async def call(
        self, method: str, path: str, body: object = None, *, query: Mapping[str, object] | None = None
    ) -> Any:
        """Make a call and decode its JSON (None if the answer has no body); raises ApiError or WireError.

        For up to ``patience_s`` a call is repeated if the server refused it with 429 or 503, or if its
        connection failed and repeating is safe: a GET, or a request that the server cannot have executed.
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
        """Like ``call``, but return the answer undecoded; ``patience_s`` overrides that of the session."""
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
        """A connection for the calling task alone; waits while all are in use."""
        async with self._slots:
            connection = self._free.pop() if self._free else Connection(self.origin, timeout_s=self.timeout_s)
            connection.token = self.token
            try:
                yield connection
            finally:
                self._free.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        while self._free:
            self._free.pop().close()

    async def create_application(self, name: str, description: str = "") -> str:
        """Create an application; return its id."""
        body = {"name": name, "description": description} if description else {"name": name}
        return record_id(await self.call("POST", "/applications", body))

    async def create_devices(self, application_id: str, devices: Sequence[Json]) -> list[str]:
        """Create many devices, a few at a time; return their ids in the same order."""
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
        """Iterate over all records of a list, page by page."""
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
        """The id of the first application with exactly this name, or None."""
        async for record in self.items("/applications", query={"filterField": "name", "filter": name}):
            if record.get("name") == name:
                return record_id(record)
        return None

    async def find_devices(self, application_id: str) -> dict[str, Json]:
        """The devices of an application by name; the first if several have the same name."""
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
    """The path of a device, or of ``tail`` under it."""
    return f"/applications/{application_id}/devices/{device_id}{tail}"


def refusal(response: Response) -> ApiError:
    """The error of an answer with a status from 400, even if its body is not an error of the API."""
    type_, message = "Unknown", response.body[:200].decode("utf-8", "replace")
    try:
        body = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    if isinstance(body, dict):
        type_, message = str(body.get("type", type_)), str(body.get("message", message))
    return api_error(response.status, type_, message, retry_after_s=retry_after_s(response))


def retry_after_s(response: Response) -> float | None:
    """The Retry-After of an answer in seconds, or None."""
    text = response.headers.get("retry-after", "")
    return float(text) if re.fullmatch(r"\d{1,6}(\.\d+)?", text) else None
