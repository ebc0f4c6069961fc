"""Reads of what workflows did: their errors, their figures, their log, and their storage entries.

Figures are the sums of minutes that the runner keeps; errors are those of the run records that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, SCAN_INLINE_MAX, Reading
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.hidden_secrets import without_secrets
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import MINUTE_MS, TimeRange, iso, parse_width, resolve_range
from trunkline.actors.workflows.flows.kind import DEVELOP
from trunkline.actors.workflows.flows.messages import (
    FlowErrorsQuery,
    FlowStatsQuery,
    GetFlowErrors,
    GetFlowLog,
    GetFlowStats,
    GetStorage,
    GetStorageSize,
)
from trunkline.actors.workflows.flows.presenter import find_flow
from trunkline.actors.workflows.flows.run_records import (
    RunRecord,
    decode_run,
    minute_of_key,
    position_at,
)
from trunkline.actors.workflows.flows.versions import VersionFound, find_version, no_version
from trunkline.store import keys
from trunkline.store.codec import decode

_ERRORS_MAX: Final = 25
"""Errors of an entry of the log."""


class StoredRun(NamedTuple):
    """The key of a run record, and the record."""

    key: bytes
    record: RunRecord


class _Minute(NamedTuple):
    """The sums of a version in a minute."""

    minute: int
    version: bytes
    sums: dict[str, int]


class _Asked(NamedTuple):
    """What a call asks about: a workflow, and a version of it or all."""

    flow: Found
    version: VersionFound | None

    @property
    def version_id(self) -> bytes | None:
        return None if self.version is None else self.version.id


# Errors, figures, log.


def get_flow_errors(reading: Reading, message: GetFlowErrors) -> Doc:
    """The errors of runs in a range of time."""
    query = message.query
    asked, range = _asked(reading, message), _range(message)
    device = None if query.device_id is None else bytes.fromhex(query.device_id)
    found = (
        each.record
        for each in stored_runs(
            reading, message.application, message.flow, range, query.sort_direction == "desc"
        )
        if each.record.error is not None
        and asked.version_id in (None, each.record.version_id)
        and device in (None, each.record.device)
    )
    return _shown_range(message, asked, range) | {
        "limit": query.limit,
        "sortDirection": query.sort_direction,
        "errors": [_shown_error(reading, message.application, each) for each in islice(found, query.limit)],
        "_type": "flowErrors",
    }


def get_flow_stats(reading: Reading, message: GetFlowStats) -> Doc:
    """Figures of runs in a range of time: for each span that has runs. A span has at least a minute."""
    query = message.query
    resolution = parse_width(query.resolution)
    asked, range = _asked(reading, message), _range(message)
    if query.device_id is not None and asked.flow.doc["flowClass"] != "edge":
        raise Invalid(
            "deviceId: is for workflows of the class edge; figures of other workflows are not kept by device. "
            "Leave it out, or list the runs of a device."
        )
    spans: dict[int, dict[str, int]] = {}
    for each in _minutes(reading, message.application, message.flow, range, asked.version_id):
        span = spans.setdefault(each.minute * MINUTE_MS // resolution * resolution, {})
        for name, count in each.sums.items():
            span[name] = span.get(name, 0) + count
    metrics = [_metric(time_ms, sums) for time_ms, sums in spans.items()]
    return _shown_range(message, asked, range) | {
        "resolution": resolution,
        "metrics": metrics,
        "_type": "flowStats",
    }


def get_flow_log(reading: Reading, message: GetFlowLog) -> list[Doc]:
    """The newest entries of the log: one for each minute and version that has runs."""
    query, asked = message.query, _asked(reading, message)
    range = resolve_range(message.now_ms, since=query.since)
    newest = _minutes(reading, message.application, message.flow, range, asked.version_id, newest_first=True)
    entries: dict[tuple[int, bytes], Doc] = {}
    for each in islice(newest, query.limit):
        version = DEVELOP if each.version == ROOT else each.version.hex()
        metric = _metric(each.minute * MINUTE_MS, each.sums)
        entries[each.minute, each.version] = {"flowVersionId": version, **metric, "errors": []}
    if not entries:
        return []
    oldest = min(minute for minute, _ in entries)
    of_entries = TimeRange(oldest * MINUTE_MS, range.end_ms)
    for run in stored_runs(reading, message.application, message.flow, of_entries, newest_first=True):
        entry = entries.get((run.record.ended_ms // MINUTE_MS, run.record.version_id))
        if entry is not None and run.record.error is not None and len(entry["errors"]) < _ERRORS_MAX:
            entry["errors"].append(_shown_error(reading, message.application, run.record))
    return list(entries.values())


def stored_runs(
    reading: Reading, application: bytes, flow: bytes, range: TimeRange, newest_first: bool
) -> Iterator[StoredRun]:
    """The run records of a range of time, in the order of their ends."""
    low, high = run_keys(application, flow, range)
    size = 0
    for key, raw in reading.snapshot.range(keys.FLOWS, low, high, reverse=newest_first):
        size += len(raw)
        reading.check_time(is_long=size > INLINE_BYTES_MAX)
        yield StoredRun(bytes(key), decode_run(raw))


def run_keys(application: bytes, flow: bytes, range: TimeRange) -> tuple[bytes, bytes]:
    """The keys of the run records of a range of time: from the first on, to before the second."""
    return (
        keys.flow_run_key(application, flow, position_at(range.start_ms), 0),
        keys.flow_run_key(application, flow, position_at(range.end_ms + 1), 0),
    )


def _minutes(
    reading: Reading,
    application: bytes,
    flow: bytes,
    range: TimeRange,
    version: bytes | None,
    *,
    newest_first: bool = False,
) -> Iterator[_Minute]:
    """The sums of minutes that overlap a range of time: of one version, or of all."""
    low = keys.flow_minute_key(application, flow, range.start_ms // MINUTE_MS, ROOT)
    last = min(range.end_ms // MINUTE_MS, keys.HOUR_MAX - 1)
    high = keys.flow_minute_key(application, flow, last + 1, ROOT)
    found = reading.snapshot.range(keys.FLOWS, low, high, reverse=newest_first)
    for count, (key, raw) in enumerate(found):
        reading.check_time(is_long=count > SCAN_INLINE_MAX)
        of = bytes(key[-keys.ID_BYTES :])
        if version in (None, of):
            yield _Minute(minute_of_key(key), of, decode(raw))


def _metric(time_ms: int, sums: dict[str, int]) -> Doc:
    return {
        "time": iso(time_ms),
        "runCount": sums.get("runs", 0),
        "pathsCompleted": sums.get("paths", 0),
        "pathsFailed": sums.get("failed", 0),
        "wallTime": sums.get("us", 0) / 1000,
    }


def _shown_error(reading: Reading, application: bytes, record: RunRecord) -> Doc:
    assert record.error is not None
    at, name, message = record.error
    shown: Doc = {
        "time": iso(record.ended_ms),
        "flowVersion": record.version,
        "error": {"name": name, "message": without_secrets(message)},
    }
    if record.version_id != ROOT:
        shown["flowVersionId"] = record.version_id.hex()
    if at >= 0:
        shown["nodeId"], _, shown["nodeLabel"] = record.nodes[at]
    if record.device is not None:
        shown["deviceId"] = record.device.hex()
        device = reading.snapshot.get(keys.RECORDS, keys.record_key("device", application, record.device))
        if device is not None:
            shown["deviceName"] = decode(device)["name"]
    return shown


def _range(message: GetFlowErrors | GetFlowStats) -> TimeRange:
    return resolve_range(message.now_ms, end=message.query.end, duration=message.query.duration)


def _shown_range(message: GetFlowErrors | GetFlowStats, asked: _Asked, range: TimeRange) -> Doc:
    """The version and the range of time that a call asks for, as the answer shows them."""
    shown: Doc = {
        "start": iso(range.start_ms),
        "end": iso(range.end_ms),
        "applicationId": message.application.hex(),
        "flowId": message.flow.hex(),
    }
    if asked.version is not None:
        shown["flowVersion"] = asked.version.name
        if asked.version.id != ROOT:
            shown["flowVersionId"] = asked.version.id.hex()
    if message.query.device_id is not None:
        shown["deviceId"] = message.query.device_id.lower()
    return shown


def _asked(reading: Reading, message: GetFlowErrors | GetFlowStats | GetFlowLog) -> _Asked:
    """The version of the path or of the query. Raises `NotFound` for the one, `Invalid` for the other."""
    flow = find_flow(reading.snapshot, message.application, message.flow)
    query = message.query
    in_query = query.flow_version if isinstance(query, FlowErrorsQuery | FlowStatsQuery) else None
    if in_query is not None:
        return _Asked(flow, version_of_query(reading, message.application, flow, in_query))
    if message.flow_version is None:
        return _Asked(flow, None)
    found = find_version(reading.snapshot.get, message.application, flow.id, flow.doc, message.flow_version)
    if found is None:
        raise no_version(message.flow_version)
    return _Asked(flow, found)


def version_of_query(reading: Reading, application: bytes, flow: Found, named: str) -> VersionFound:
    """The version that a parameter or a field `flowVersion` names. Raises `Invalid`."""
    found = find_version(reading.snapshot.get, application, flow.id, flow.doc, named)
    if found is None:
        raise Invalid(
            f"flowVersion: this workflow has no version {named!r}; {DEVELOP} is its editable state."
        )
    return found


# Storage.


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
