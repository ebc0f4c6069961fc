"""Dry runs: a version of a workflow is run with a payload that the caller gives, and nothing outside of it changes.

Owns stubs, which take the place of nodes, and what a caller is told about the run. A dry run has the time and the
seed that the caller gives, so the same call has the same result.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, ClassVar

import msgspec
import trio
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.paths import Path, compile_path
from trunkline.actors.core.formulas.price import Budget, charged, spend
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.computing import give_up_if_cancelled, in_thread
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.global_values import global_values
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.structs import Body, Message
from trunkline.actors.core.values.terms import Timestamp
from trunkline.actors.core.values.timestamps import iso, parse_report_time
from trunkline.actors.engine.branch_memory import BranchMemory
from trunkline.actors.engine.copies import copied
from trunkline.actors.engine.errors import RunFailed
from trunkline.actors.engine.executor import execute
from trunkline.actors.engine.heavy_work import is_large
from trunkline.actors.engine.program import compile_program, node_problems
from trunkline.actors.engine.programs import INLINE_BYTES_MAX, Programs
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.snapshots import BYTES_MAX, SNAPSHOTS_MAX, Snapshots
from trunkline.actors.engine.visit import Bounds, NodeStep, Problem, Program, Run, Visit
from trunkline.actors.engine.world import DryWorld
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.actors.workflows.flows.bodies import Definition
from trunkline.actors.workflows.flows.definition import check_definition
from trunkline.actors.workflows.flows.kind import DEVELOP, FLOW
from trunkline.actors.workflows.flows.versions import find_version, no_version
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.codec import decode, decode_in_parts


class Stub(Body, frozen=True):
    """What takes the place of a node: values that are set in the payload, by their paths, and the output to follow."""

    output: Annotated[int, Meta(ge=0, le=100)] = 0
    set: dict[str, Any] = msgspec.field(default_factory=dict)


class FlowTest(Body, frozen=True):
    """What a dry run begins with."""

    trigger: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET
    data: Any = msgspec.field(default_factory=dict)
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    flow_version: Annotated[str, Meta(max_length=255)] = DEVELOP
    stubs: dict[str, Stub] = msgspec.field(default_factory=dict)
    time: Timestamp | UnsetType = UNSET
    seed: int = 0


class DraftTest(FlowTest, frozen=True):
    """What a dry run begins with, and a definition that takes the place of the version, as it would be saved."""

    definition: Definition | UnsetType = UNSET


class TestFlow(Message, frozen=True):
    """Run a version of the workflow `flow` without effects, or a definition that is not saved."""

    __test__: ClassVar[bool] = False  # this is no test case
    flow: bytes
    body: DraftTest
    by: Creator


class FlowTester(Actor):
    """Runs a workflow without effects, one dry run at a time. It owns nothing, and stores nothing."""

    kind: ClassVar[str] = "flowTester"
    noun: ClassVar[str] = "workflow"

    __slots__ = ()

    def load(self) -> bool:
        return True  # what it runs is read with each call

    async def on_test_flow(self, message: TestFlow) -> Doc:
        """Run it, and return what happened. Raises `NotFound` and `Invalid`."""
        application, flow, body = self.ref.parent, message.flow, message.body
        get = self.system.journal.get
        raw = records.raw_of(get, FLOW, application, flow)
        if raw is None:
            raise missing(FLOW, flow)
        record: Doc = decode(raw)
        version = find_version(get, application, flow, record, body.flow_version)
        if version is None:
            raise no_version(body.flow_version)
        definition: Doc
        if body.definition is UNSET:
            stored = get(keys.FLOWS, keys.flow_definition_key(application, flow, version.id))
            definition = {} if stored is None else await _decoded(stored)
        else:
            definition = msgspec.to_builtins(body.definition)
            check_definition(definition, record["flowClass"], self.system.limits, at="definition.")
        identity = {"applicationId": application.hex(), "flowId": flow.hex(), "flowName": record["name"]}
        pool, limits = self.system.component(ScriptPool), self.system.limits
        owner = self.system.component(Owners).of(application)
        run = new_run(body, self.system.clock.wall_ms(), owner, identity, pool, limits)
        run.share = self.system.component(Share)
        run.authors.append(message.by.mandates)
        run.judge = self.system.component(Authors).judge(application)
        run.opened_world = DryWorld(self.system, application, flow, record["name"], run.authors)
        run.memory = self.system.component(BranchMemory)
        run.find_program = partial(self.system.component(Programs).custom_node, application)
        return await dry_run(definition, body, run)


async def _decoded(stored: bytes) -> Doc:
    """A definition, decoded in a thread if it is long."""
    definition: Doc = (
        decode(stored)
        if len(stored) <= INLINE_BYTES_MAX
        else await in_thread(decode_in_parts, stored, partial(spend, 1))
    )
    return definition


def tester_ref(application: bytes, flow: bytes) -> Ref:
    """The actor that runs dry runs of a workflow."""
    return Ref(FlowTester.kind, application, flow)


def new_run(
    body: FlowTest, now_ms: int, owner: bytes, identity: Doc, pool: ScriptPool, limits: Limits
) -> Run:
    """A run with the time and the seed of the body, without a time at `now_ms`; scripts are charged to `owner`.

    Raises `Invalid` for the time."""
    if body.time is not UNSET:
        now_ms = parse_report_time(body.time, now_ms, field="time")
    bounds = Bounds(limits.run_steps_max, limits.run_loop_items_max, limits.run_payload_bytes_max)
    run = Run(bounds, now_ms, body.seed, partial(pool.call, owner=owner), identity, [], owner=owner)
    run.deadline_s = trio.current_time() + limits.run_deadline_s
    return run


async def dry_run(definition: Doc, body: FlowTest, run: Run) -> Doc:
    """Run a definition; return the path, the debug messages, the last payload, and the error if it failed."""
    is_long = is_large(body.data) or is_large(body.payload)
    given = await in_thread(_given, body) if is_long else _given(body)
    program = compile_program(definition)
    with charged(Budget(run.owner)):
        problems = await in_thread(_problems, definition)
    trigger = _trigger(definition, body.trigger)
    program = _with_stubs(program, body.stubs)
    run.programs.append(program)
    run.snapshots = Snapshots()
    payload = _first_payload(definition, trigger, given, run)
    error: RunFailed | None = None
    await run.share.enter()
    try:
        await execute(program, trigger, payload, run)
    except RunFailed as failed:
        error = failed
    finally:
        run.share.leave()
    steps = [
        {
            **named(run, program_number, index),
            "output": output,
            "tookUs": took_us,
            **run.snapshots.shown(at),
        }
        for at, (program_number, index, output, took_us) in enumerate(run.path)
    ]
    shown: Doc = {
        "steps": steps,
        "debug": [
            {
                **named(run, each.program, each.node),
                "level": each.level,
                "message": each.message,
                "value": each.value,
            }
            for each in run.debugged
        ],
        "notes": [
            {**named(run, program_number, index), "message": message, "count": count}
            for (program_number, index, message), count in run.notes.items()
        ],
        "problems": [
            {**named(run, 0, each.node), "message": each.message}
            for each in problems
            if program.nodes[each.node].id not in body.stubs
        ],
    }
    if run.snapshots.left_out:
        shown["leftOut"] = (
            f"The payload is not shown after {run.snapshots.left_out} steps: an answer has the first "
            f"{SNAPSHOTS_MAX}, up to {BYTES_MAX} bytes in all."
        )
    if error is not None:
        shown["error"] = {
            **named(run, error.program, error.node),
            "name": error.error.name,
            "message": str(error.error),
        }
    return shown


def named(run: Run, program: int, index: int) -> Doc:
    """The node of a run, as its caller knows it."""
    node = run.programs[program].nodes[index]
    return {"nodeId": node.id, "nodeType": node.type, "nodeLabel": node.label}


def _problems(definition: Doc) -> list[Problem]:
    return list(node_problems(definition, give_up_if_cancelled))


def _trigger(definition: Doc, named: str | UnsetType) -> int:
    """The index of the trigger to begin with: by its key or its id; the first one if none is named."""
    triggers: list[Doc] = definition.get("triggers", [])
    for index, trigger in enumerate(triggers):
        meta = trigger.get("meta", {})
        if named is UNSET or named in (trigger.get("key"), meta.get("id"), meta.get("uiId"), trigger["type"]):
            return index
    if named is UNSET:
        raise Invalid("This version of the workflow has no trigger, so nothing can run.")
    raise Invalid(
        f"trigger: this version of the workflow has no trigger {named[:300]!r}; give the key, the id or the type of "
        "one, or leave it out for the first one."
    )


def _given(body: FlowTest) -> tuple[Any, Doc]:
    """Copies of the data and of the rest of the payload that the caller gives."""
    check_nesting(body.data, "data")
    check_nesting(body.payload, "payload")
    return copied(body.data), copied(body.payload)


def _first_payload(definition: Doc, trigger: int, given: tuple[Any, Doc], run: Run) -> Doc:
    """The payload that the first nodes get: what every run has, then what the caller gives."""
    of: Doc = definition["triggers"][trigger]
    return {
        "time": iso(run.now_ms),
        "data": given[0],
        **run.identity,
        "triggerId": of.get("key", ""),
        "triggerType": of["type"],
        "globals": global_values(definition.get("globals", [])),
        **given[1],
    }


def _with_stubs(program: Program, stubs: dict[str, Stub]) -> Program:
    """The program with stubs in place of the nodes that they name."""
    known = {node.id for node in program.nodes}
    for id in stubs:
        if id not in known:
            raise Invalid(f"stubs: this version of the workflow has no node {id[:300]!r}.")
    nodes = tuple(
        node._replace(step=_stub(node.id, stubs[node.id])) if node.id in stubs else node
        for node in program.nodes
    )
    return program._replace(nodes=nodes)


def _stub(id: str, stub: Stub) -> NodeStep:
    values: list[tuple[Path, Any]] = []
    for text, value in stub.set.items():
        check_nesting(value, f"stubs.{id}.set")
        try:
            values.append((compile_path(text), value))
        except FormulaError as error:
            raise Invalid(f"stubs.{id}.set: {error}") from None

    def step(visit: Visit) -> int:
        for path, value in values:
            visit.put(path, copied(value))
        return stub.output

    return step
