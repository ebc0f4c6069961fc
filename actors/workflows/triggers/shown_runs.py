"""Runs that have ended, as callers see them: in lists, and one with its path.

Whoever may read runs need not have the rights of the author, who may have made tokens and keys in them: all texts that
runs have computed, or were given, are shown without secrets. The stored trigger has them, so that a replay is the same.
"""

from __future__ import annotations

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.hidden_secrets import without_secrets
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.plain_json import as_json
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.workflows.flows.run_records import RunRecord, run_id, unpacked
from trunkline.actors.workflows.triggers.intake import decode_trigger


def summary_of_run(number: int, record: RunRecord) -> Doc:
    """A run as lists show it."""
    shown: Doc = {
        "id": run_id(number),
        "outcome": record.outcome,
        "time": iso(record.ended_ms),
        "flowVersion": record.version,
    }
    if record.version_id != ROOT:
        shown["flowVersionId"] = record.version_id.hex()
    if record.outcome == "dropped":
        shown["dropped"] = record.dropped
    else:
        shown |= {
            "triggerType": record.trigger_type,
            "triggerKey": record.trigger_key,
            "triggerId": record.trigger_id,
            "queued": iso(record.queued_ms),
            "began": iso(record.began_ms),
            "wallTime": record.took_us / 1000,
            "steps": record.steps,
            "canReplay": record.trigger is not None,
        }
    if record.notes:
        shown["noteCount"] = len(record.notes)
    if record.device is not None:
        shown["deviceId"] = record.device.hex()
    if record.replays is not None:
        shown["replayOf"] = run_id(record.replays)
    if record.error is not None:
        shown["error"] = shown_error(record)
    return shown


def shown_run(number: int, record: RunRecord) -> Doc:
    """A run with its path, its messages, and what it was given."""
    shown = summary_of_run(number, record)
    path = iter(record.path)
    shown["path"] = [
        {**_node(record, at), "output": output, "tookUs": took_us}
        for at, output, took_us in zip(path, path, path, strict=True)
    ]
    shown["debug"] = [
        {
            **_node(record, at),
            "level": level,
            "message": without_secrets(message),
            "value": without_secrets(value),
        }
        for at, level, message, value in record.debug
    ]
    shown["notes"] = [
        {**_node(record, at), "message": without_secrets(message), "count": count}
        for at, message, count in record.notes
    ]
    if record.trigger is not None:
        cause = decode_trigger(unpacked(record.trigger)).cause
        told = without_secrets({"time": iso(cause.time_ms), "data": cause.data, **cause.more})
        shown["payload"] = as_json(told) if cause.device is not None else told
    return shown


def shown_error(record: RunRecord) -> Doc:
    """The error of a run: the node, unless it is about none, name and message."""
    assert record.error is not None
    at, name, message = record.error
    return {**({} if at < 0 else _node(record, at)), "name": name, "message": without_secrets(message)}


def _node(record: RunRecord, at: int) -> Doc:
    id, type, label = record.nodes[at]
    return {"nodeId": id, "nodeType": type, "nodeLabel": label}
