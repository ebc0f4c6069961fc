"""No body, query string or read of the API holds the event loop for long. `worst_inputs.py` feeds all, this a part."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from tests.e2e.conftest import running_server
from tests.e2e.loop_meter import LoopMeter, pace
from tests.e2e.worst_inputs import Result, feed, without_throttles
from trunkline.http.wire.garbage_collection import collecting
from trunkline.limits.table import Limits

SPARE = 20
"""Machines differ, a busy one stretches processor time as well, and work without a price takes far longer."""
ONE_OF = 20
QUERIES_ONE_OF = 100
ALWAYS = (
    "data.export",
    "flows.post",
    "devices.patch",
    "flow.setStorageEntry",
    "device.sendCommand",
    "dashboard.",
)


def wanted(operation: str, label: str) -> bool:
    """Choose the reads, one of some bodies, and more of those operations that held the loop for longest before."""
    chance = crc32(f"{operation} {label}".encode())
    if label.startswith("?"):
        return chance % QUERIES_ONE_OF == 0
    return label == "read" or chance % (2 if operation.startswith(ALWAYS) else ONE_OF) == 0


async def test_no_call_holds_the_loop(tmp_path: Path) -> None:
    meter = LoopMeter()
    most_ms = SPARE * Limits().loop_turn_ms_max * pace()
    long: list[str] = []

    def tell(result: Result) -> None:
        if result.held.ms > most_ms:
            long.append(f"{result.operation} {result.label}: {result.held}")

    async with running_server(tmp_path / "data", limits=without_throttles(), log_level="error") as server:
        with collecting(), meter.running():
            results = await feed(server, meter, wanted, tell)
    assert not long, "\n".join(long)
    assert sum(result.held.turn is not None for result in results) > 20, "nothing was measured"
