"""Workflows that wait for the errors of others: who is told of a failed run, and what.

The caller of a failed run is told as well that it will not reply, if no workflow is told that could do so instead. A
run that has changed something may have told others of the caller, so the caller goes on waiting for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.origin import HOPS_MAX, Origin
from trunkline.actors.engine.copies import copied, size_of
from trunkline.actors.engine.errors import NodeError, RunFailed
from trunkline.actors.engine.programs import CompiledFlow
from trunkline.actors.engine.visit import Run
from trunkline.actors.workflows.triggers.index import FlowIndex, Watcher
from trunkline.actors.workflows.triggers.intake import Cause, TriggerRecord
from trunkline.actors.workflows.triggers.replies import Replies

ERRORED_BYTES_MAX: Final = 256 * 1024
_TYPE: Final = "flowError"
_WIDE: Final = frozenset({"cloud", "experience", "global"})
"""Scopes that a trigger made here may have in its key alone."""
_CALLED: Final = ("endpoint", "webhook")
"""Types of triggers with a caller who may wait for a reply: by the trigger id."""
_TOO_LARGE: Final = "Payload data omitted due to size"


def error_watchers(compiled: CompiledFlow, record: TriggerRecord, index: FlowIndex) -> tuple[Watcher, ...]:
    """The triggers for the errors of a workflow, the narrowest scope first; each is told.

    `config.scope` says whose errors a trigger waits for, and the class of its workflow which of its versions counts: of
    workflows of an experience the version that failed, of all others the default version. The key tells nothing, since
    exports have one there that their server made. `record` is the trigger of the failed run.
    """
    of_experience = compiled.flow_class == "experience"
    wider = "experience" if of_experience else "cloud"
    found: list[tuple[int, Watcher]] = []
    for each in _waiting(index, record.application, record.version if of_experience else None):
        scope = each.config.get("scope") or (each.key if each.key in _WIDE else "local")
        if scope == "local":
            rank = 0 if each.flow == compiled.flow else -1
        elif each.flow_class == "experience":
            rank = 1 if of_experience else -1
        else:
            rank = 3 if scope == "global" else 2 if scope == wider else -1
        if rank >= 0:
            found.append((rank, each))
    return tuple(each for _, each in sorted(found, key=lambda pair: pair[0]))


def _waiting(index: FlowIndex, application: bytes, version: str | None) -> Iterator[Watcher]:
    """The triggers of errors that count where a workflow of an experience fails in a version, or another without it."""
    named = index.of(application, version)
    yield from (each for each in named.of_type(_TYPE) if each.flow_class == "experience")
    yield from (each for each in index.of(application).of_type(_TYPE) if each.flow_class != "experience")


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
    if is_last or not error_watchers(compiled, record, system.component(FlowIndex)):
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
