"""Workflows that wait for the errors of others: who is told of a failed run, and what.

The caller of a failed run is told as well that it will not reply, if no workflow is told that could do so instead. A
run that has changed something may have told others of the caller, so the caller goes on waiting for them.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.programs import CompiledFlow
from trunkline.actors.engine.visit import Run
from trunkline.actors.records.kind import Doc
from trunkline.actors.triggers.index import FlowIndex, Triggers, Watcher, watcher_of
from trunkline.actors.triggers.intake import Cause, TriggerRecord
from trunkline.actors.triggers.replies import Replies
from trunkline.actors.values.origin import HOPS_MAX, Origin

ERRORED_BYTES_MAX: Final = 256 * 1024
_TYPE: Final = "flowError"
_CALLED: Final = ("endpoint", "webhook")
"""Types of triggers with a caller who may wait for a reply: by the trigger id."""
_TOO_LARGE: Final = "Payload data omitted due to size"


def error_watchers(compiled: CompiledFlow, version: str | None, triggers: Triggers) -> tuple[Watcher, ...]:
    """The triggers for the errors of a workflow: of the narrowest scope that has some."""
    local = tuple(
        watcher_of(compiled.flow, index, {"triggers": compiled.triggers}, compiled.flow_class, version)
        for index, each in enumerate(compiled.triggers)
        if (each["type"], each.get("key")) == (_TYPE, "local")
    )
    scope = "experience" if compiled.flow_class == "experience" else "cloud"
    return local or triggers.get(_TYPE, scope) or triggers.get(_TYPE, "global")


def error_cause(
    record: TriggerRecord, compiled: CompiledFlow, run: Run, failed: RunFailed, now_ms: int
) -> Cause | None:
    """What they are told. None if nobody is told, so that the failure is the end of what the trigger began.

    That is so if no workflow waits for the errors of this one, and for a run that was itself caused by an error, or by
    too many others. Then a caller need not wait for the run either.
    """
    assert run.world is not None
    system = run.world.system
    hops = 1 if record.cause.origin is None else record.cause.origin.hops + 1
    is_last = record.type == _TYPE or hops > HOPS_MAX
    if is_last or not error_watchers(
        compiled, record.version, system.component(FlowIndex).of(record.application)
    ):
        if record.type in _CALLED and record.cause.replays is None and not run.world.has_changed:
            system.component(Replies).count_runs(record.application, record.cause.trigger_id, -1)
        return None
    node = run.programs[failed.program].nodes[failed.node]
    payload = failed.payload
    if size_of(payload, ERRORED_BYTES_MAX) > ERRORED_BYTES_MAX:
        payload = _TOO_LARGE
    flow = record.flow.hex()
    data: Doc = {
        "errorInfo": {
            "error": {"name": failed.error.name, "message": str(failed.error), "stack": ""},
            "nodeId": node.id,
            "nodeType": node.type,
            "nodeLabel": node.label,
            "flowId": flow,
            "flowName": compiled.name,
            "flowVersion": compiled.version,
        },
        "erroredPayload": copied(payload),
    }
    given = record.cause.data
    if isinstance(given, dict) and "replyId" in given:
        data["replyId"] = given["replyId"]
    return Cause(f"{flow}-{_TYPE}", data, now_ms, origin=Origin(flow, "flow", hops))


def fault_of(run: Run) -> RunFailed:
    """The failure of a run by a fault of the server, at the node that was visited last."""
    program, index, *_ = run.path[-1]
    error = NodeError("InternalError", "The server failed to run this node; the fault is logged.")
    return RunFailed(program, index, error, None)
