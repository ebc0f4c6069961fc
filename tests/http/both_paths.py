"""Two servers on one system, one with the fast path and one with Quart only; each has a device and a table row.

Owns no test.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.actors.house import House, running_house
from tests.http.raw_wire import Answer, Wired, serving
from trunkline.actors.core.records.messages import CreateRecord, Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.messages import CreateDataTable, InsertRows, TablePost
from trunkline.actors.platform.applications.keys import KeyPost
from trunkline.http.app import create_app
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.fast_path import FastPath
from trunkline.http.calls.route import Route
from trunkline.http.routes import TABLE
from trunkline.http.serve import make_dispatcher
from trunkline.http.site.site import Site
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

FAST_ROUTES = {route.operation: route for route in TABLE.routes if route.fast_path}

GOOD_BODIES: dict[str, bytes] = {
    "device.sendState": b'{"data":{"a":21.5,"label":"x"}}',
    "device.sendCommand": b'{"name":"switch","payload":{"on":true}}',
    "device.setConnectionStatus": b'{"status":"connected"}',
    "dataTableRows.post": b'{"a":21.5,"label":"x"}',
}
"""A valid body for each route of the fast path that takes one."""

LIMITS = {
    "body_bytes_max": 4096,
    "send_state": {"calls": 200, "window_s": 15},
    "send_command": {"calls": 200, "window_s": 15},
    "set_connection_status": {"calls": 200, "window_s": 15},
}


class Twin(NamedTuple):
    """A device and a data table with a row, and the server through which they are called."""

    wired: Wired
    dispatcher: Dispatcher
    house: House
    key: bytes
    device: bytes
    table: bytes
    row: str

    def bearer(self, route: Route) -> str:
        """A token that the route accepts: the device's, or one of the application if devices have no access."""
        if route.device != "no":
            return self.token()
        return self.token("all.Application", typ="application", sub=self.house.application.hex())

    def token(self, *scopes: str, ttl_s: float | None = None, **other: str) -> str:
        claims = {
            "typ": "device",
            "sub": self.device.hex(),
            "app": self.house.application.hex(),
            "key": self.key.hex(),
            **other,
        }
        return self.dispatcher.tokens.issue(
            claims, scopes or ["all.Device"], self.house.clock.wall_ms(), ttl_s
        )

    def path(self, route: Route) -> str:
        ids = {
            "applicationId": self.house.application.hex(),
            "deviceId": self.device.hex(),
            "dataTableId": self.table.hex(),
            "rowId": self.row,
        }
        return re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route.path)

    async def ask(self, data: bytes, *, method: str) -> bytes:
        """The response without what may differ between the two servers: the date, the request id and the ids."""
        return comparable(await self.wired.ask(data, method=method))


def comparable(answer: Answer) -> bytes:
    """A response without date and request id, and with its ids replaced."""
    return re.sub(rb"\b[0-9a-f]{24}\b", b"<id>", without_own_fields(answer.head) + answer.body)


def without_own_fields(head: bytes) -> bytes:
    """The head of a response without the fields that no two responses share: the date and the request id."""
    return re.sub(rb"\r\n(date|x-request-id): [^\r]+", b"", head, flags=re.IGNORECASE)


class BothPaths(NamedTuple):
    fast: Twin
    quart: Twin

    async def compare(self, made: Any, *, method: str) -> bytes:
        """Send the request `made(twin)` to both, and return the response, which must be the same."""
        fast = await self.fast.ask(made(self.fast), method=method)
        quart = await self.quart.ask(made(self.quart), method=method)
        assert fast == quart
        return fast


@asynccontextmanager
async def both_paths(
    data_dir: Path, engine: str = "fast", limits: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[BothPaths]:
    changed = {**LIMITS, **(limits or {})}
    numbers = Limits().override(changed)
    async with running_house(data_dir, limits=numbers) as house:
        dispatcher = make_dispatcher(house.system, Settings(data_dir=str(data_dir)))
        trust = options.get("trust_forwarded_for", False)
        quart_app = create_app(dispatcher, Site(dispatcher.table, "test"), trust_forwarded_for=trust)
        fast_app = FastPath(dispatcher, quart_app, trust_forwarded_for=trust)
        ref = Ref("application", ROOT, house.application)
        by = Creator("0" * 24, "user", "nobody")
        post = KeyPost(**options.get("key", {}))
        made = await house.system.ask(ref, CreateRecord(resource="applicationKey", body=post, by=by))
        async with (
            serving(fast_app, engine, fast_path=fast_app, limits=changed) as with_fast_path,
            serving(quart_app, engine, limits=changed) as quart_only,  # type: ignore[arg-type]
        ):
            twins = []
            for wired in (with_fast_path, quart_only):
                table, row = await make_table(house)
                device = await house.device(**options.get("device", {}))
                twins.append(Twin(wired, dispatcher, house, made.value.id, device, table, row))
            yield BothPaths(*twins)


async def make_table(house: House) -> tuple[bytes, str]:
    """Make a data table with one row; returns the id of the table and of the row."""
    columns = [
        {"name": "a", "dataType": "number", "constraint": "optional"},
        {"name": "label", "dataType": "string", "constraint": "optional"},
    ]
    ref = Ref("dataTable", house.application, house.system.ids.new(house.clock.wall_ms()))
    post = msgspec.convert({"name": "readings", "columns": columns}, TablePost)
    await house.system.ask(ref, CreateDataTable(body=post))
    made = await house.system.ask(ref, InsertRows(body=[{"a": 1, "label": "first"}]))
    return ref.id, made.value.row_ids[0]


def request(
    twin: Twin,
    route: Route,
    body: bytes | None = None,
    *fields: str,
    method: str | None = None,
    token: str | None = "",
    query: str = "",
    path: str | None = None,
    content_type: str | None = "application/json",
) -> bytes:
    """A request as bytes; with a token that the route accepts, unless another one or None is given."""
    lines = [f"{method or route.method} {path or twin.path(route)}{query} HTTP/1.1", "Host: x"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token or twin.bearer(route)}")
    if body is not None:
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *fields, "", ""]).encode() + (body or b"")
