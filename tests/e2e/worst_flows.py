"""The longest turn of the event loop for the worst inputs of each type of node:

    .venv/bin/python -m tests.e2e.worst_flows [--only PART_OF_TYPE] [--over MS] [--short]

What is fed is generated from the forms of the nodes: each setting in turn leads to the worst value of a payload, with
each option of each choice. A workflow of one node is made for each, and its button is pressed with each value. So a
type that is added is covered (`worst_nodes.py`). Prints what is over the limit, the longest
first.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.loop_meter import Held, LoopMeter, pace
from tests.e2e.silent_socket import silent_socket
from tests.e2e.sse_client import until
from tests.e2e.worst_nodes import SHORT, UNREACHED, VALUES, WORST, Case, Json, cases
from trunkline.actors.core.runtime.computing import switch_often
from trunkline.actors.engine.runner import FlowRunner
from trunkline.limits.table import Limits, Rate

LIMIT_MS: Final = 5.0
PAUSE_S: Final = 0.01
"""Between two looks whether a run has ended."""


class Result(NamedTuple):
    """What was fed, how the run ended, and how long it held the loop."""

    case: Case
    value: str
    outcome: str
    held: Held

    @property
    def is_unreached(self) -> bool:
        """Whether a node fails with what is usual, so that nothing is known of what it does with more."""
        if self.case.type in UNREACHED:
            return False
        return self.case.label == "plain" and self.value == "small" and self.outcome == "failed"


def reads_worst(case: Case) -> bool:
    """Whether a setting leads to the worst value: not where all are usual, or long texts of usual values."""
    return case.label != "plain" and WORST in json.dumps(case.config)


class Bench:
    """A server with an application, in which workflows of one node are run."""

    def __init__(self, server: Server, meter: LoopMeter, socket: str) -> None:
        self._server = server
        self._meter = meter
        self._socket = socket
        self._application = ""
        self._ids: dict[str, str] = {}
        self._flow = ""

    async def make(self) -> None:
        """Create what the nodes work with."""
        server = self._server
        self._application = app = await server.application()
        device = await server.device(app)
        columns = [{"name": "name", "dataType": "string", "constraint": "optional"}]
        table = await server.call("POST", f"{app}/data-tables", {"name": "t", "columns": columns})
        row = await server.call("POST", f"{app}/data-tables/{table['id']}/rows", {"name": "a"})
        event = await server.call("POST", f"{app}/events", {"level": "info", "subject": "a"})
        group = await server.call("POST", f"{app}/experience/groups", {"name": "g"})
        user = {"email": "a@example.com", "password": "Correct-horse-7"}
        await server.call("POST", f"{app}/experience/users", user)
        self._ids = {
            "device": device.rpartition("/")[2],
            "table": table["id"],
            "row": row["id"],
            "event": event["id"],
            "group": group["id"],
            "web": f"{server.url}/readyz",
        }
        flow = {"name": "worst", "triggers": [], "nodes": []}
        self._flow = (await server.call("POST", f"{app}/flows", flow))["id"]
        pressed = {"type": "virtualButton", "key": "none", "meta": {"id": "none"}, "outputIds": [[]]}
        other = {"name": "other", "triggers": [pressed], "nodes": []}
        start = {"type": "customNodeStart", "key": "start", "outputIds": [[]]}
        custom = {"name": "custom", "flowClass": "customNode", "triggers": [start], "nodes": []}
        self._ids["customNode"] = (await server.call("POST", f"{app}/flows", custom))["id"]
        socket = {"name": "s", "integrationType": "websocket", "websocketConfig": {"url": self._socket}}
        self._ids["integration"] = (await server.call("POST", f"{app}/integrations", socket))["id"]
        self._ids["flow"] = (await server.call("POST", f"{app}/flows", other))["id"]

    async def results(self, chosen: Iterable[Case], values: tuple[str, ...]) -> AsyncIterator[Result]:
        """Feed some cases. What a type may delete is made anew for the next one."""
        before = "Delete"
        for case in chosen:
            if case.type != before and "Delete" in before:
                await self.make()
            before = case.type
            for result in await self.feed(case, values if reads_worst(case) else ("small",)):
                yield result

    async def feed(self, case: Case, values: tuple[str, ...]) -> list[Result]:
        """Run a node with each of these values."""
        path = f"{self._application}/flows/{self._flow}"
        text = json.dumps(case.config)
        for name, id in self._ids.items():
            text = text.replace(f"${name}", id)
        node = {"id": "n", "type": case.type, "config": json.loads(text), "outputIds": [["e"], ["e"]]}
        end = {"id": "e", "type": "DebugNode", "config": {"property": "data.r"}}
        answer = await self._server.call(
            "PATCH", path, {"triggers": [_BUTTON], "nodes": [_DECODE, node, end]}
        )
        assert answer["id"]
        return [await self._press(case, value, path) for value in values]

    async def _press(self, case: Case, value: str, path: str) -> Result:
        more = '"n":2,"key":"a","list":[{"a":1}],"text":"YWFh","json":"[1]","object":{"a":1}'
        data = f'{{"t":{json.dumps(VALUES[value], ensure_ascii=False)},{more}}}'
        runner = self._server.system.component(FlowRunner)
        runs, failed = runner.runs, runner.failed
        gc.collect(0)
        self._meter.take()
        async with self._server.client() as client:
            content = f'{{"key":"button","payload":{data}}}'
            sent = await client.post(f"{path}/virtualButton", content=content.encode(), headers=_JSON)
        assert sent.is_success, sent.text
        await until(lambda: runner.runs > runs and not runner.running, PAUSE_S)
        await trio.lowlevel.checkpoint()
        outcome = "failed" if runner.failed > failed else "completed"
        return Result(case, value, outcome, self._meter.take())


_JSON: Final = {"content-type": "application/json"}
_BUTTON: Final[Json] = {"type": "virtualButton", "key": "button", "meta": {"id": "b"}, "outputIds": [["d"]]}
_DECODE: Final[Json] = {
    "id": "d",
    "type": "JsonDecodeNode",
    "config": {
        "source": "data.t",
        "destination": WORST,
        "errorBehavior": "payloadPath",
        "errorPath": "data.e",
    },
    "outputIds": [["n"]],
}


@contextmanager
def resting_collector() -> Iterator[None]:
    """Meanwhile the collector rests, and threads that compute leave the interpreter to the loop, as in a server."""
    gc.collect()
    gc.disable()
    before_s = sys.getswitchinterval()
    switch_often()
    try:
        yield
    finally:
        sys.setswitchinterval(before_s)
        gc.enable()


_LIFTED: Final = {each.name: "off" for each in dataclasses.fields(Limits) if isinstance(each.default, Rate)}
SETTINGS: Final[dict[str, Any]] = {
    "limits": {**_LIFTED, "logged_turns_per_minute_max": 1},
    "callback_private_networks": True,
    "sendgrid_url": "http://127.0.0.1:1",
}
"""No throttles: they are no part of what a run costs."""


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--over", type=float, default=LIMIT_MS)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    slower = pace()
    sys.stdout.write(f"this machine is slower by {slower:.2f}\n")
    meter, results = LoopMeter(), []
    values = SHORT if given.short else tuple(VALUES)
    with tempfile.TemporaryDirectory() as directory, resting_collector():
        async with running_server(Path(directory) / "data", **SETTINGS) as server, silent_socket() as socket:
            with meter.running():
                bench = Bench(server, meter, socket)
                async for result in bench.results(cases(given.only), values):
                    results.append(result)
                    if result.held.ms / slower > given.over or result.is_unreached:
                        _tell(result, sys.stderr)
    results.sort(key=lambda result: -result.held.ms)
    sys.stdout.write(f"{len(results)} inputs\n")
    for result in results:
        if result.held.ms / slower > given.over:
            _tell(result, sys.stdout)


def _tell(result: Result, out: Any) -> None:
    case, value, outcome, held = result
    turn = held.turn
    where = "" if turn is None else f"{turn.kind} {turn.name} {turn.detail} (wall {turn.ms:.0f})"
    out.write(f"{held.ms:8.1f} ms {case.type} {case.label} | {value} {outcome} | {where}\n")


if __name__ == "__main__":
    trio.run(main)
