"""Which run records and sums of minutes are too old. The workflow removes them (`workflows/flows/actor.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trunkline.actors.core.records.expiry import Part, Search, Step, kept_since_ms, older, search_each
from trunkline.actors.core.values.timestamps import MINUTE_MS
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.actors.workflows.flows.run_records import ExpireRuns, ended_ms_of_key, minute_of_key
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot


def expired_runs(
    snapshot: Snapshot, application: bytes, flow: bytes, oldest_ms: int, most: int
) -> Search[ExpireRuns]:
    """Search what a workflow has that is older than `oldest_ms`: at most `most` entries."""

    def of(prefix: bytes, most: int, time_ms: Callable[[bytes], int]) -> tuple[list[bytes], int]:
        found = snapshot.keys(keys.FLOWS, prefix, keys.prefix_end(prefix))
        return older(((time_ms(key), bytes(key)) for key in found), oldest_ms, most)

    runs, runs_wait_ms = of(keys.flow_runs_prefix(application, flow), most, ended_ms_of_key)
    minutes, minutes_wait_ms = of(
        keys.flow_minutes_prefix(application, flow),
        most - len(runs),
        lambda key: (minute_of_key(key) + 1) * MINUTE_MS,
    )
    message = ExpireRuns(runs=runs, minutes=minutes)
    wait_ms = min(runs_wait_ms, minutes_wait_ms)
    return Search(message if message.entries else None, wait_ms > 0, wait_ms)


def search_flows(snapshot: Snapshot, step: Step) -> Part:
    """Search the workflows of an application in the order of their ids, from the id `start` on."""
    oldest_ms = kept_since_ms(step.limits.run_records_keep_days, step.now_ms)
    return search_each(
        snapshot, step, FLOW, lambda flow, most: expired_runs(snapshot, step.owner, flow, oldest_ms, most)
    )
