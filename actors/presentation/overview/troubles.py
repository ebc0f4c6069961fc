"""What is wrong in an application beside its devices: failing workflows, failed jobs, integrations without connection.

Owns how much of each is read. Workflows and jobs are read with the count of the fleet, in its worker thread; the states
of connections are in memory. Does not own what that means for the health (`health.py`).
"""

from __future__ import annotations

from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.connections.integrations.resource import INTEGRATION, IntegrationBoard
from trunkline.actors.core.records import records
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import HOUR_MS, MINUTE_MS
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.limits.table import DAY_MS
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.records.reading import Reading
    from trunkline.store.snapshot import Snapshot

_FLOWS_MAX: Final = 2_000
"""Workflows whose runs of the last hour are looked at: a tenth of a second. Applications have far fewer."""
_JOBS_MAX: Final = 200
"""Jobs that are looked at, the newest first."""
_INTEGRATIONS_MAX: Final = 200
"""Integrations whose connections are looked at: a millisecond."""
_FLOWS_S: Final = 0.5
"""No workflow is looked at after so long."""


class FailingFlow(NamedTuple):
    """A workflow with runs that failed in the last hour, by the number of its runs and of those that failed."""

    id: bytes
    name: str
    runs: int
    failed: int


class FailedJob(NamedTuple):
    """A job of the last day that did not succeed. `kind` is that of the record that it was for."""

    id: bytes
    name: str
    kind: str


class Link(NamedTuple):
    """An integration that is to be connected, and whether it is."""

    id: bytes
    name: str
    is_up: bool
    error: str | None


def failing_flows(snapshot: Snapshot, application: bytes, now_ms: int) -> list[FailingFlow]:
    """The workflows with failed runs in the last hour, those with the most first."""
    first, last = (now_ms - HOUR_MS) // MINUTE_MS + 1, now_ms // MINUTE_MS + 1
    until_s = perf_counter() + _FLOWS_S
    found = []
    for id, doc in islice(records.scan(snapshot, FLOW, application), _FLOWS_MAX):
        if perf_counter() > until_s:
            break
        low = keys.flow_minute_key(application, id, first, ROOT)
        high = keys.flow_minute_key(application, id, last, ROOT)
        runs = failed = 0
        for _, raw in snapshot.range(keys.FLOWS, low, high):
            sums = decode(raw)
            runs += sums.get("runs", 0)
            failed += sums.get("failed", 0)
        if failed:
            found.append(FailingFlow(id, doc["name"], runs, min(failed, runs)))
    return sorted(found, key=lambda each: -each.failed)


def failed_jobs(snapshot: Snapshot, application: bytes, now_ms: int) -> list[FailedJob]:
    """The jobs that were queued in the last day and failed or were refused, the newest first."""
    prefix = keys.record_prefix(JOB.name, application)
    since_s = max(0, now_ms - DAY_MS) // 1000  # ids begin with the second in which they were made
    low = prefix + since_s.to_bytes(4, "big")
    newest = snapshot.range(keys.RECORDS, low, keys.prefix_end(prefix), reverse=True)
    found = []
    for key, raw in islice(newest, _JOBS_MAX):
        doc = decode(raw)
        if doc["status"] in ("failed", "errored"):
            found.append(FailedJob(bytes(key[-keys.ID_BYTES :]), doc["name"], doc["resourceType"]))
    return found


def links(reading: Reading, application: bytes) -> list[Link]:
    """The integrations that are to be connected now."""
    system = reading.system
    assert system is not None
    state_of = system.component(IntegrationBoard).state_of
    found = []
    for id, doc in islice(records.scan(reading.snapshot, INTEGRATION, application), _INTEGRATIONS_MAX):
        state = state_of(id)
        if state is not None:
            is_up = state["connectInfo"]["ts"] is not None
            found.append(Link(id, doc["name"], is_up, state["disconnectInfo"].get("error")))
    return found
