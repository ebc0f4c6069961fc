"""Virtual buttons: an actor for each button that is pressed, so that each has a throttle of its own.

It owns nothing but its throttle. A press is checked against the workflow and counted, and triggers a run.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.definition import button_of
from trunkline.actors.workflows.flows.kind import CLASSES, DEFAULT, FLOW
from trunkline.actors.workflows.flows.messages import PressButton
from trunkline.actors.workflows.flows.run_records import run_id
from trunkline.actors.workflows.flows.versions import Get, VersionFound, find_version
from trunkline.actors.workflows.triggers.index import watcher_of
from trunkline.actors.workflows.triggers.intake import Cause, stage
from trunkline.store import keys
from trunkline.store.codec import decode


def button_ref(application: bytes, flow: bytes, key: str) -> Ref:
    """The actor of the button with this key."""
    id = hashlib.blake2b(flow + key.encode("utf-8", "surrogatepass"), digest_size=keys.ID_BYTES).digest()
    return Ref(VirtualButton.kind, application, id)


class VirtualButton(Actor):
    """A virtual button of a workflow. `ref.parent` is the application's id."""

    kind: ClassVar[str] = "virtualButton"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # what it belongs to is checked with each press

    def missing(self) -> str:
        return f"There is no application {self.ref.parent.hex()}."

    def on_press_button(self, message: PressButton) -> str | None:
        """Check and count a press; the answer is the id of the run, None if nothing is to run.

        Raises `NotFound` for the workflow, `Invalid` for the version or the button, or if nothing is to run and
        something must.
        """
        return press(self, message.flow, message.body, message.origin, must_run=message.must_run)


class Button(NamedTuple):
    """A virtual button: its trigger is that at `position` of the definition of the version."""

    record: Doc
    version: VersionFound
    definition: Doc
    position: int


def find_button(get: Get, application: bytes, flow: bytes, body: ButtonPress) -> Button:
    """The button that a press names. Raises `NotFound` for the workflow, `Invalid` for the version or the button."""
    raw = records.raw_of(get, FLOW, application, flow)
    if raw is None:
        raise missing(FLOW, flow)
    record = decode(raw)
    named = DEFAULT if body.flow_version is UNSET else body.flow_version
    version = find_version(get, application, flow, record, named)
    if version is None:
        raise Invalid(
            f"flowVersion: this workflow has no version {named!r}; leave it out for the default version."
        )
    stored = get(keys.FLOWS, keys.flow_definition_key(application, flow, version.id))
    definition = {} if stored is None else decode(stored)
    position = button_of(definition, flow.hex(), body.key)
    if position is None:
        raise Invalid(
            f"key: version {version.name!r} of this workflow has no virtual button {body.key[:300]!r}; "
            "give the key of a trigger of type virtualButton."
        )
    return Button(record, version, definition, position)


def _why_nothing_runs(button: Button) -> str | None:
    """Why a press starts nothing, in a sentence; None if it starts a run."""
    flow_class = button.record["flowClass"]
    if flow_class == "customNode":
        return "key: a custom node runs in the workflows that use it, so a press starts nothing; press one of theirs."
    if flow_class not in CLASSES:
        return f"key: {flow_class} workflows run on devices, so a press starts nothing here."
    if not button.record["enabled"]:
        return "enabled: this workflow is disabled, so a press starts nothing; enable it first."
    if not button.version.doc.get("enabled", True):
        return f"flowVersion: version {button.version.name!r} is disabled, so a press starts nothing; enable it first."
    return None


def press(
    actor: Actor, flow: bytes, body: ButtonPress, origin: Origin | None, *, must_run: bool = False
) -> str | None:
    """Check, count and stage a press in the turn of an actor of the application, as `on_press_button` does."""
    application = actor.ref.parent
    check_nesting(body.payload, "payload")
    check_nesting(body.meta, "meta")
    button = find_button(actor.system.journal.get, application, flow, body)
    record, _, definition, position = button
    why_not = _why_nothing_runs(button)
    if why_not is not None and must_run:
        raise Invalid(why_not)
    now_ms = actor.system.clock.wall_ms()
    actor.add(keys.COUNTS, keys.app_counts_key(application, now_ms // HOUR_MS), {"virtualButton": 1})
    if why_not is not None:
        return None
    named = None if body.flow_version is UNSET else body.flow_version
    watcher = watcher_of(flow, position, definition, record["flowClass"], named)
    data = _given(definition["triggers"][position]) if body.payload is UNSET else body.payload
    device = None if not isinstance(body.device_id, str) else bytes.fromhex(body.device_id)
    more = {} if body.meta is UNSET else {"meta": body.meta}
    cause = Cause(body.key, data, now_ms, more, origin, device=device)
    return next((run_id(each.number) for each in stage(actor, (watcher,), cause)), None)


def _given(trigger: Doc) -> Any:
    """The payload that the trigger itself has, as JSON text; an empty object without one."""
    try:
        return msgspec.json.decode(trigger.get("meta", {}).get("payload") or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
