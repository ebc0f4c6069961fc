"""The longest turn of the event loop while long definitions of workflows are saved, read and run:

    .venv/bin/python -m tests.e2e.long_definitions

Their templates and conditions take long to compile. Prints milliseconds of processor time for each of the three.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio

from tests.e2e.conftest import Server, running_server
from tests.e2e.loop_meter import LoopMeter
from tests.e2e.sse_client import until
from tests.e2e.worst_flows import SETTINGS, resting_collector
from trunkline.actors.engine.runner import FlowRunner

Json = dict[str, Any]

_STATEMENTS = "{{a.b}}{{#if c}}x{{/if}}"
_CONDITION = "1 == 1" + " || {{a.b}} > 2" * 90 + " + 1" * 7_000


def definitions() -> Iterator[tuple[str, list[Json]]]:
    """Nodes one after the other, with what they are."""
    yield "one node with 700 kB of templates", _chain(1, "StringNode", _text(30_000), output=0)
    yield "1,000 nodes, 1 MB", _chain(1_000, "StringNode", _text(30), output=0)
    yield "20 conditions of 30 kB", _chain(20, "ConditionalNode", {"expression": _CONDITION}, output=1)


def _text(count: int) -> Json:
    return {"sourceData": _STATEMENTS * count, "method": "toUpper", "resultPath": "data.r"}


def _chain(count: int, type: str, config: Json, output: int) -> list[Json]:
    """Nodes of which each follows the one before it at this output."""
    nodes: list[Json] = []
    for number in range(count):
        following = [] if number == count - 1 else [f"n{number + 1}"]
        outputs = [following if at == output else [] for at in range(output + 1)]
        nodes.append({"id": f"n{number}", "type": type, "config": config, "outputIds": outputs})
    return nodes


async def measure(server: Server, meter: LoopMeter, nodes: list[Json]) -> tuple[float, float, float]:
    """The longest turns of saving, reading and running the nodes."""
    application = await server.application()
    runner = server.system.component(FlowRunner)
    button = {"type": "virtualButton", "key": "b", "meta": {"id": "b"}, "outputIds": [["n0"]]}
    meter.take()
    made = await server.call(
        "POST", f"{application}/flows", {"name": "f", "triggers": [button], "nodes": nodes}
    )
    saved = meter.take().ms
    path = f"{application}/flows/{made['id']}"
    await server.call("GET", path)
    read = meter.take().ms
    runs, failed = runner.runs, runner.failed
    await server.call("POST", f"{path}/virtualButton", {"key": "b", "payload": {}})
    await until(lambda: runner.runs > runs and not runner.running)
    assert runner.failed == failed
    return saved, read, meter.take().ms


async def main() -> None:
    meter = LoopMeter()
    with tempfile.TemporaryDirectory() as directory, resting_collector():
        async with running_server(Path(directory) / "data", **SETTINGS) as server:
            with meter.running():
                for name, nodes in definitions():
                    saved, read, run = await measure(server, meter, nodes)
                    sys.stdout.write(f"{name}: saved {saved:.1f}, read {read:.1f}, first run {run:.1f} ms\n")


if __name__ == "__main__":
    trio.run(main)
