"""Replays: runs are queued again with the triggers that their records have kept. An actor for each workflow.

It owns nothing. A trigger is given as it was, to the version that the caller names or to the default version.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.definition import trigger_at
from trunkline.actors.workflows.flows.kind import DEFAULT, FLOW
from trunkline.actors.workflows.flows.run_records import run_id
from trunkline.actors.workflows.flows.versions import find_version
from trunkline.actors.workflows.triggers.index import watcher_of
from trunkline.actors.workflows.triggers.intake import decode_trigger, stage
from trunkline.actors.workflows.triggers.run_messages import Replayed, ReplayedRuns, ReplayRuns
from trunkline.store import keys
from trunkline.store.codec import decode


def replayer_ref(application: bytes, flow: bytes) -> Ref:
    """The actor that repeats the runs of a workflow."""
    return Ref(FlowReplayer.kind, application, flow)


class FlowReplayer(Actor):
    """Repeats runs of one workflow: `ref.id` is its id, `ref.parent` that of the application."""

    kind: ClassVar[str] = "flowReplayer"
    noun: ClassVar[str] = "workflow"

    __slots__ = ()

    def load(self) -> bool:
        return True  # the workflow is read with each message

    def on_replay_runs(self, message: ReplayRuns) -> ReplayedRuns:
        """Queue runs again. Raises `NotFound` for the workflow, `Invalid` for the version or what it does not have."""
        record, definition, version = self._version(message.flow_version)
        replayed: list[Replayed] = []
        for number, raw in message.triggers:
            trigger = decode_trigger(raw)
            index = trigger_at(definition.get("triggers", []), trigger.index, trigger.type, trigger.key)
            if index is None:
                if message.skips:
                    continue
                raise Invalid(
                    f"flowVersion: version {version!r} has no trigger of type {trigger.type} with the key "
                    f"{trigger.key[:300]!r}, which started the run; name a version that has it."
                )
            watcher = watcher_of(self.ref.id, index, definition, record["flowClass"], message.flow_version)
            cause = msgspec.structs.replace(trigger.cause, replays=number)
            # Without its guard, so that also a run that does nothing in this version can be seen.
            staged = stage(self, (watcher._replace(guard=None),), cause)
            replayed += [Replayed(run_id(new.number), run_id(number)) for new in staged]
        return ReplayedRuns(runs=replayed, skipped=len(message.triggers) - len(replayed))

    def _version(self, flow_version: str | None) -> tuple[Doc, Doc, str]:
        """The record of the workflow, the definition that runs, and the name of its version."""
        application, flow, get = self.ref.parent, self.ref.id, self.system.journal.get
        raw = records.raw_of(get, FLOW, application, flow)
        if raw is None:
            raise missing(FLOW, flow)
        record: dict[str, Any] = decode(raw)
        found = find_version(get, application, flow, record, flow_version or DEFAULT)
        if found is None:
            raise Invalid(
                f"flowVersion: this workflow has no version {flow_version!r}; leave it out for the default version."
            )
        if not record["enabled"]:
            raise Invalid("The workflow is disabled and runs nothing; set enabled of it to true first.")
        if not found.doc.get("enabled", True):
            raise Invalid(
                f"flowVersion: version {found.name!r} is disabled and runs nothing; enable it, or name another one."
            )
        stored = get(keys.FLOWS, keys.flow_definition_key(application, flow, found.id))
        return record, {} if stored is None else decode(stored), found.name
