"""Reads of run records: a page of them, one, those that a stream has missed, and those that are to be repeated."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import INLINE_BYTES_MAX, Reading
from trunkline.actors.core.runtime.subscription import Missed
from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.core.values.timestamps import TIMESTAMP_MS_MAX, TimeRange, resolve_range
from trunkline.actors.workflows.flows.presenter import find_flow
from trunkline.actors.workflows.flows.run_records import (
    RunRecord,
    decode_run,
    number_of_key,
    position_of_key,
    run_id,
    unpacked,
)
from trunkline.actors.workflows.flows.runs import run_keys, stored_runs, version_of_query
from trunkline.actors.workflows.triggers.run_messages import (
    ChooseRun,
    ChooseRuns,
    Chosen,
    GetMissedRuns,
    GetRun,
    ListRuns,
    ReplaysPost,
)
from trunkline.actors.workflows.triggers.shown_runs import shown_run, summary_of_run
from trunkline.store import keys

_ALWAYS: Final = TimeRange(0, TIMESTAMP_MS_MAX)
_REPLAYED: Final = ("failed", "abandoned")
_REPLAYED_BYTES_MAX: Final = 4 << 20
"""Bytes of the triggers of one batch."""


def list_runs(reading: Reading, message: ListRuns) -> Doc:
    """A page of the runs of a workflow, the newest first."""
    query, application, snapshot = message.query, message.application, reading.snapshot
    flow = find_flow(snapshot, application, message.flow)
    version = None
    if query.flow_version is not None:
        version = version_of_query(reading, application, flow, query.flow_version).id
    device = None if query.device_id is None else bytes.fromhex(query.device_id)
    range = _ALWAYS
    if query.since is not None:
        range = resolve_range(message.now_ms, since=query.since)._replace(end_ms=TIMESTAMP_MS_MAX)

    def matches(record: RunRecord) -> bool:
        return (
            query.outcome in (None, record.outcome)
            and version in (None, record.version_id)
            and query.trigger_type in (None, record.trigger_type)
            and device in (None, record.device)
        )

    skip = query.page * query.per_page
    found = stored_runs(reading, application, flow.id, range, newest_first=True)
    if (query.outcome, version, query.trigger_type, device) == (None, None, None, None):
        total = snapshot.count(keys.FLOWS, *run_keys(application, flow.id, range))
        page = [_summary(*each) for each in islice(found, skip, skip + query.per_page)]
    else:
        chosen = [_summary(*each) for each in found if matches(each.record)]
        total, page = len(chosen), chosen[skip : skip + query.per_page]
    return {
        "items": page,
        "count": len(page),
        "totalCount": total,
        "page": query.page,
        "perPage": query.per_page,
        "applicationId": application.hex(),
        "flowId": flow.id.hex(),
        "_type": "flowRuns",
    }


def _summary(key: bytes, record: RunRecord) -> Doc:
    return summary_of_run(number_of_key(key), record)


def get_run(reading: Reading, message: GetRun) -> Doc:
    """One run with its path."""
    find_flow(reading.snapshot, message.application, message.flow)
    number, record = _find_run(reading, message)
    return shown_run(number, record)


def _find_run(reading: Reading, message: GetRun | ChooseRun) -> tuple[int, RunRecord]:
    """The number of a run, and its record. A run ends after it is numbered, so it is searched from there on."""
    application, flow = message.application, message.flow
    number = int.from_bytes(message.run, "big")
    if number <= keys.NUMBER_MAX:
        prefix = keys.flow_runs_prefix(application, flow)
        first, end = keys.flow_run_key(application, flow, number, 0), keys.prefix_end(prefix)
        for key in reading.snapshot.keys(keys.FLOWS, first, end):
            if number_of_key(key) == number:
                raw = reading.snapshot.get(keys.FLOWS, bytes(key))
                assert raw is not None
                return number, decode_run(raw)
    raise NotFound(f"There is no run {message.run.hex()} of this workflow here; the oldest ones are removed.")


def get_missed_runs(reading: Reading, message: GetMissedRuns) -> Missed:
    """The runs that ended after a position, encoded as a stream sends them; at least one if there is any."""
    application, flow = message.application, message.flow
    missed: list[tuple[int, bytes]] = []
    if message.position >= keys.NUMBER_MAX:
        return Missed(missed, more=False)
    left_bytes = message.bytes_max
    first = keys.flow_run_key(application, flow, message.position + 1, 0)
    end = keys.prefix_end(keys.flow_runs_prefix(application, flow))
    read = 0
    for key, raw in reading.snapshot.range(keys.FLOWS, first, end):
        if len(missed) >= message.limit or left_bytes <= 0:
            return Missed(missed, more=True)
        read += len(raw)
        reading.check_time(is_long=read > INLINE_BYTES_MAX)
        event = json_bytes(shown_run(number_of_key(key), decode_run(raw)))
        missed.append((position_of_key(key), event))
        left_bytes -= len(event)
    return Missed(missed, more=False)


# Runs to be repeated.


def choose_run(reading: Reading, message: ChooseRun) -> Chosen:
    """The run of the path. Raises `NotFound`; `Invalid` if its trigger is not kept."""
    find_flow(reading.snapshot, message.application, message.flow)
    number, record = _find_run(reading, message)
    if record.trigger is None:
        raise Invalid(
            f"The run {run_id(number)} cannot be repeated: its trigger was dropped, or too large to be kept."
        )
    return Chosen([(number, unpacked(record.trigger))])


def choose_runs(reading: Reading, message: ChooseRuns) -> Chosen:
    """The failed and abandoned runs of a range, the oldest first: as many as one call repeats."""
    body, application = message.body, message.application
    flow = find_flow(reading.snapshot, application, message.flow)
    begin, end = _positions(reading, body, message.now_ms, application, flow.id)
    triggers: list[tuple[int, bytes]] = []
    skipped, left_bytes, read = 0, _REPLAYED_BYTES_MAX, 0
    first = keys.flow_run_key(application, flow.id, begin, 0)
    for key, raw in reading.snapshot.range(
        keys.FLOWS, first, keys.flow_run_key(application, flow.id, end, 0)
    ):
        if len(triggers) >= reading.limits.replayed_runs_max or left_bytes <= 0:
            return Chosen(triggers, skipped, f"{position_of_key(key):016x}{end:016x}")
        read += len(raw)
        reading.check_time(is_long=read > INLINE_BYTES_MAX)
        record = decode_run(raw)
        if record.outcome not in _REPLAYED:
            continue
        if record.trigger is None:
            skipped += 1
            continue
        triggers.append((number_of_key(key), unpacked(record.trigger)))
        left_bytes -= len(triggers[-1][1])
    return Chosen(triggers, skipped)


def _positions(
    reading: Reading, body: ReplaysPost, now_ms: int, application: bytes, flow: bytes
) -> tuple[int, int]:
    """The positions of a range in the order of ends: from the first on, to before the second.

    It ends with the newest run that is stored at the first call. What is repeated ends after that, maybe in the same
    millisecond, and later calls do not repeat it again.
    """
    if body.continue_at is not msgspec.UNSET:
        if body.since is not msgspec.UNSET or body.end is not msgspec.UNSET:
            raise Invalid("continueAt: contains the range of the first call; leave out since and end.")
        return int(body.continue_at[:16], 16), int(body.continue_at[16:], 16)
    since = None if body.since is msgspec.UNSET else body.since
    end = None if body.end is msgspec.UNSET else body.end
    low, high = run_keys(application, flow, resolve_range(now_ms, since=since, end=end))
    newest = next(reading.snapshot.keys(keys.FLOWS, low, high, reverse=True), None)
    begin = position_of_key(low)
    return begin, begin if newest is None else position_of_key(newest) + 1
