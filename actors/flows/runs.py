"""Reads of what workflows did: their errors, their figures, their log, and their storage entries.

Workflows do not run yet, so there are no runs to report: the range and the version are checked, and the answer is
empty.
"""

from __future__ import annotations

from typing import Any

from trunkline.actors.flows.kind import DEVELOP
from trunkline.actors.flows.messages import (
    FlowErrorsQuery,
    FlowStatsQuery,
    GetFlowErrors,
    GetFlowLog,
    GetFlowStats,
    GetStorage,
    GetStorageSize,
)
from trunkline.actors.flows.presenter import find_flow
from trunkline.actors.flows.versions import find_version, no_version
from trunkline.actors.records.kind import Doc
from trunkline.actors.records.reading import SCAN_INLINE_MAX, Reading
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.timestamps import iso, parse_duration, resolve_range
from trunkline.store import keys
from trunkline.store.codec import decode


def get_flow_errors(reading: Reading, message: GetFlowErrors) -> Doc:
    """The errors of runs in a range of time."""
    query = message.query
    shown = _range(reading, message)
    return shown | {
        "limit": query.limit,
        "sortDirection": query.sort_direction,
        "errors": [],
        "_type": "flowErrors",
    }


def get_flow_stats(reading: Reading, message: GetFlowStats) -> Doc:
    """Figures of runs in a range of time."""
    resolution = parse_duration(message.query.resolution, field="resolution")
    if resolution == 0:
        raise Invalid(
            "resolution: 0 is no width of a bucket; give milliseconds, such as 3600000 for an hour."
        )
    return _range(reading, message) | {"resolution": resolution, "metrics": [], "_type": "flowStats"}


def get_flow_log(reading: Reading, message: GetFlowLog) -> list[Doc]:
    """The newest entries of the log."""
    _version(reading, message, None)
    if message.query.since is not None:
        resolve_range(message.now_ms, since=message.query.since)
    return []


def _range(reading: Reading, message: GetFlowErrors | GetFlowStats) -> Doc:
    """The version and the range of time that a call asks for, as the answer shows them."""
    query = message.query
    in_query = query.flow_version if isinstance(query, FlowErrorsQuery | FlowStatsQuery) else None
    chosen = resolve_range(message.now_ms, end=query.end, duration=query.duration)
    shown: Doc = {
        "start": iso(chosen.start_ms),
        "end": iso(chosen.end_ms),
        "applicationId": message.application.hex(),
        "flowId": message.flow.hex(),
        **_version(reading, message, in_query),
    }
    return shown if query.device_id is None else shown | {"deviceId": query.device_id.lower()}


def _version(reading: Reading, message: Any, in_query: str | None) -> Doc:
    """The version of the path or of the query. Raises `NotFound` for the one, `Invalid` for the other."""
    flow = find_flow(reading.snapshot, message.application, message.flow)
    named = message.flow_version if in_query is None else in_query
    if named is None:
        return {}
    found = find_version(reading.snapshot.get, message.application, flow.id, flow.doc, named)
    if found is None and in_query is not None:
        raise Invalid(
            f"flowVersion: this workflow has no version {in_query!r}; {DEVELOP} is its editable state."
        )
    if found is None:
        raise no_version(named)
    return {"flowVersion": found.name} | ({} if found.id == ROOT else {"flowVersionId": found.id.hex()})


def get_storage(reading: Reading, message: GetStorage) -> Doc:
    """All storage entries, by key."""
    sums = _sums(reading, message)
    reading.check_time(is_long=sums.get("keys", 0) > SCAN_INLINE_MAX)
    prefix = keys.flow_storage_prefix(message.application, message.flow, sums.get("generation", 0))
    entries = (decode(raw) for _, raw in reading.snapshot.range(keys.FLOWS, prefix, keys.prefix_end(prefix)))
    return {name: value for name, value, _ in entries}


def get_storage_size(reading: Reading, message: GetStorageSize) -> Doc:
    """The bytes and the number of the storage entries."""
    sums = _sums(reading, message)
    return {"memoryUsed": sums.get("bytes", 0), "keysCount": sums.get("keys", 0)}


def _sums(reading: Reading, message: GetStorage | GetStorageSize) -> dict[str, int]:
    find_flow(reading.snapshot, message.application, message.flow)
    raw = reading.snapshot.get(keys.FLOWS, keys.flow_head_key(message.application, message.flow))
    return {} if raw is None else decode(raw)
