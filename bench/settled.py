"""Waiting until a server has settled everything: all states are in blocks, and none wait in order of arrival.

Owns the name of the metric that says so. A server without the metric has nothing to settle.
"""

from __future__ import annotations

import trio

from trunkline.bench.errors import ApiError, BenchError
from trunkline.bench.session import Session

WAITING_METRIC = "trunkline_timeline_waiting_points"
"""The gauge of the points that wait to be settled."""

SETTLING_TIMEOUT_S = 600.0
"""Seconds: in which a server settles everything after a load."""

POLL_S = 0.1


async def settled(session: Session) -> None:
    """Return when nothing waits to be settled; raises BenchError after SETTLING_TIMEOUT_S."""
    with trio.move_on_after(SETTLING_TIMEOUT_S):
        while await metric(session, WAITING_METRIC):  # noqa: ASYNC110 - the server sends no event for it
            await trio.sleep(POLL_S)
        return
    raise BenchError(f"The server did not settle everything in {SETTLING_TIMEOUT_S:g} s.")


async def metric(session: Session, name: str) -> float:
    """The value of a metric without labels; 0 if the server does not have it, or shows no metrics."""
    try:
        response = await session.fetch("GET", "/metrics")
    except ApiError:
        return 0.0
    for line in response.body.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.removeprefix(name))
    return 0.0
