"""The longest turn of the event loop for the worst inputs of everything that a tenant can send:

    .venv/bin/python -m tests.e2e.worst_inputs [--only PART_OF_OPERATION] [--over MS]

What is fed is generated from the document of the API: the largest bodies of each operation (`worst_bodies.py`), then
all reads of what these bodies have left, and each with its longest query strings (`worst_queries.py`). Prints what held
the loop for longest, the longest first; that takes five to ten minutes. `test_worst_inputs.py` feeds a part of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.loop_meter import Held, LoopMeter, pace
from tests.e2e.worst_bodies import worst_bodies
from tests.e2e.worst_queries import worst_queries
from trunkline.http.calls.route import Route
from trunkline.http.openapi import examples
from trunkline.http.openapi.document import document
from trunkline.http.routes import TABLE
from trunkline.http.version import VERSION
from trunkline.http.wire.garbage_collection import collecting
from trunkline.limits.table import Limits, Rate

Json = Any
TIMEOUT_S: Final = 120
LEAST_LINES: Final = 10
"""Lines that are printed also if nothing is over the limit."""
_LEFT_OUT: Final = frozenset(
    {"me.delete", "me.changePassword", "auth.authenticateUser", "me.enableTwoFactorAuth"}
)


class Result(NamedTuple):
    """What was fed, and how long it held the loop."""

    operation: str
    label: str
    status: int
    held: Held


class Records:
    """Ids of records that exist, by the placeholder of a path."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.ids: dict[str, str] = {}
        self._client = client

    def path(self, route: Route) -> str:
        """The path of a route, with an example where there is no record."""

        def value(found: re.Match[str]) -> str:
            name = found[1]
            return self.ids.get(name) or examples.of_path(route, name)

        return re.sub(r"\{(\w+)\}", value, route.path)

    def body(self, route: Route) -> Json:
        """The example of a route, with the ids of records that exist."""
        return _replaced(
            examples.BODIES.get(route.operation),
            {examples.IDS[name]: id for name, id in self.ids.items() if name in examples.IDS},
        )

    async def make(self) -> None:
        """Create one of each kind that can be created with its example."""
        routes = sorted(
            (
                route
                for route in TABLE.routes
                if (route.method == "POST" and route.creates_actor) or route.operation.endswith(".post")
            ),
            key=lambda route: route.path.count("/"),
        )
        for route in routes:
            if route.body is None:
                continue
            answer = await self._client.post(self.path(route), json=self.body(route))
            made = answer.json() if answer.is_success and answer.content else {}
            id = made.get("id") if isinstance(made, dict) else None
            name = next(
                (
                    each.path.removeprefix(route.path + "/{").partition("}")[0]
                    for each in TABLE.routes
                    if each.path.startswith(route.path + "/{")
                ),
                None,
            )
            if id and name and name not in self.ids:
                self.ids[name] = id
            elif name:
                sys.stderr.write(f"{route.operation}: {answer.status_code} {answer.text[:150]}\n")


def _replaced(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, dict):
        return {name: _replaced(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, ids) for each in value]
    return ids.get(value, value) if isinstance(value, str) else value


async def feed(
    server: Server, meter: LoopMeter, wanted: Callable[[str, str], bool], tell: Callable[[Result], None]
) -> list[Result]:
    """Call each operation with its worst bodies, and then read everything.

    `wanted` chooses by operation and label, `tell` hears of each result at once.
    """
    results: list[Result] = []
    api = document(TABLE, VERSION)
    bytes_max = server.settings.limits.body_bytes_max
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=TIMEOUT_S) as client:
        records = Records(client)
        await records.make()

        async def call(route: Route, label: str, body: bytes | None, query: str = "") -> None:
            meter.take()
            path = f"{records.path(route)}{query}"
            async with client.stream(route.method, path, content=body) as answer:
                if route.event is None:
                    await answer.aread()
            results.append(Result(route.operation, label, answer.status_code, meter.take()))
            tell(results[-1])

        for route in TABLE.routes:
            if route.operation in _LEFT_OUT or route.body is None or route.streams_body:
                continue
            # What sentences say about a type is found out once.
            await client.request(route.method, records.path(route), content=b'{"notKnown": []}')
            content = api["paths"][route.path][route.method.lower()]["requestBody"]["content"]
            schema = content["application/json"]["schema"]
            chosen = partial(wanted, route.operation)
            for label, body in worst_bodies(api, schema, records.body(route), bytes_max, chosen):
                await call(route, label, body)
        for route in TABLE.routes:
            if (
                route.method == "GET"
                and route.event is None
                and not route.upgrades
                and wanted(route.operation, "read")
            ):
                await call(route, "read", None)
        for route in TABLE.routes:
            if (
                route.operation in _LEFT_OUT
                or route.upgrades
                or route.streams_body
                or route.method == "DELETE"
            ):
                continue
            parameters = api["paths"][route.path][route.method.lower()].get("parameters", [])
            example = records.body(route)
            content = None if example is None else json.dumps(example).encode()
            for label, text in worst_queries(api, parameters, server.settings.limits.header_bytes_max):
                if wanted(route.operation, label):
                    await call(route, label, content, f"?{text}")
    return results


def without_throttles() -> dict[str, None]:
    """Limits for which no call is refused because it comes too often."""
    limits = Limits()
    return {
        field.name: None
        for field in dataclasses.fields(limits)
        if isinstance(getattr(limits, field.name), Rate)
    }


async def main() -> None:
    """Feed everything, and print what is over the limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="a part of the names of operations")
    parser.add_argument("--over", type=float, default=Limits().loop_turn_ms_max, help="milliseconds")
    given = parser.parse_args()
    slower = pace()
    sys.stdout.write(f"this machine is slower by {slower:.2f}\n")

    def tell(result: Result) -> None:
        if result.held.ms > given.over * slower:
            sys.stderr.write(f"{_line(result, slower)}\n")

    meter = LoopMeter()
    with tempfile.TemporaryDirectory() as directory:
        async with running_server(
            Path(directory) / "data", limits=without_throttles(), log_level="error"
        ) as server:
            with collecting(), meter.running():
                results = await feed(server, meter, lambda operation, _: given.only in operation, tell)
    results.sort(key=lambda result: -result.held.ms)
    sys.stdout.write(f"{len(results)} inputs, the longest turns:\n")
    for number, result in enumerate(results):
        if number < LEAST_LINES or result.held.ms > given.over * slower:
            sys.stdout.write(f"{_line(result, slower)}\n")


def _line(result: Result, slower: float) -> str:
    operation, label, status, held = result
    turn = held.turn
    work = "" if turn is None else f"{turn.kind} {turn.name} {turn.detail}"
    return f"{held.ms / slower:8.1f} ms {operation:40} {status} {label[:60]} | {work}"


if __name__ == "__main__":
    trio.run(main)
