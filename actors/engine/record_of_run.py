"""The record of a run: how it went, in a form that can be shown without the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trunkline.actors.engine.errors import RunFailed
from trunkline.actors.engine.programs import CompiledFlow
from trunkline.actors.engine.visit import Run
from trunkline.actors.workflows.flows.run_records import Outcome, RunRecord, packed
from trunkline.actors.workflows.triggers.intake import TriggerRecord
from trunkline.actors.workflows.triggers.queue import Queued

_NODES_TOLD: Final = 3


def run_record(
    entry: Queued,
    raw: bytes,
    record: TriggerRecord,
    compiled: CompiledFlow,
    run: Run,
    failed: RunFailed | None,
    times: tuple[int, int, int],
    payload_bytes_max: int,
) -> RunRecord:
    """Make it. `times` are begin and end in ms, and the time that the run took in us."""
    began_ms, ended_ms, took_us = times
    outcome: Outcome = "completed" if failed is None else "failed"
    nodes: list[list[str]] = []
    positions: dict[tuple[int, int], int] = {}

    def position(program: int, index: int) -> int:
        at = positions.get((program, index))
        if at is None:
            at = positions[program, index] = len(nodes)
            node = run.programs[program].nodes[index]
            nodes.append([node.id, node.type, node.label])
        return at

    path = [
        number
        for program, index, output, step_us in run.path
        for number in (position(program, index), output, step_us)
    ]
    debug = [
        [position(each.program, each.node), each.level, each.message, each.value] for each in run.debugged
    ]
    notes = [
        [position(program, index), message, count] for (program, index, message), count in run.notes.items()
    ]
    error = None
    if failed is not None:
        at = position(failed.program, failed.node)
        error = [at, failed.error.name, str(failed.error)]
    return RunRecord(
        outcome=outcome,
        version=compiled.version,
        version_id=compiled.version_id,
        trigger_type=record.type,
        trigger_key=record.key,
        trigger_id=record.cause.trigger_id,
        queued_ms=entry.queued_ms,
        began_ms=began_ms,
        ended_ms=ended_ms,
        took_us=took_us,
        steps=run.steps,
        nodes=nodes,
        path=path,
        debug=debug,
        notes=notes,
        error=error,
        device=record.cause.device,
        replays=record.cause.replays,
        trigger=packed(raw) if len(raw) <= payload_bytes_max else None,
    )


def unrun_record(
    entry: Queued,
    record: TriggerRecord,
    compiled: CompiledFlow,
    now_ms: int,
    outcome: Outcome,
    error: tuple[str, str],
    raw: bytes | None,
) -> RunRecord:
    """The record of a trigger that was not run, with the name and the sentence of the error.

    `raw` is the trigger, if the record is to show it.
    """
    return RunRecord(
        outcome=outcome,
        version=compiled.version,
        version_id=compiled.version_id,
        trigger_type=record.type,
        trigger_key=record.key,
        trigger_id=record.cause.trigger_id,
        queued_ms=entry.queued_ms,
        began_ms=now_ms,
        ended_ms=now_ms,
        error=[-1, *error],
        device=record.cause.device,
        replays=record.cause.replays,
        trigger=None if raw is None else packed(raw),
    )


def last_nodes(run: Run) -> Callable[[], str]:
    """What tells the types of the last nodes that a run has visited: one of them took the time.

    It holds the path, not the run, so whoever has it keeps no value of the run.
    """
    programs, path = run.programs, run.path

    def told() -> str:
        nodes = (programs[number].nodes[index] for number, index, _, _ in path[-_NODES_TOLD:])
        return ", ".join(node.type for node in nodes)

    return told
