"""Scheduled presses: virtual buttons that workflows let be pressed later, each by an id by which it can be changed.

Owns the presses of one application, each under a key of its own that begins with its time. A press that is due is
staged in the batch that removes it, so it happens once, also when the server is killed. Who waits for the first due
time is `timers.py`. In memory are the times only.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, ClassVar, Final

import msgspec

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound, PayloadTooLarge
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.workflows.flows.bodies import ButtonPress
from trunkline.actors.workflows.flows.due_times import DueTimes, Firing, Place
from trunkline.actors.workflows.flows.messages import FireTimers
from trunkline.actors.workflows.flows.schedules import SECONDS_MAX
from trunkline.actors.workflows.triggers.button import find_button, press
from trunkline.actors.workflows.triggers.queue import Dropped, TriggerQueue
from trunkline.store import keys
from trunkline.store.codec import decode, encode

ID_CHARS_MAX: Final = 255
_AT_ONCE: Final = 64
"""Presses of one turn."""
_PAUSE_MS: Final = 1_000
"""A chain of runs with pauses of this length is no loop that has to come to an end."""


class SchedulePress(Message, frozen=True):
    """Press a button of `flow` later: `after_ms` from now, or at `due_ms`. The answer is a `Scheduled`.

    It takes the place of a press with this id that is still to come.
    """

    id: str
    flow: bytes
    body: ButtonPress
    origin: Origin
    after_ms: int | None = None
    due_ms: int | None = None


class Scheduled(msgspec.Struct, frozen=True):
    """When the button will be pressed, and whether it replaces another press."""

    due_ms: int
    is_update: bool


class CancelPress(Message, frozen=True):
    """Cancel the press with this id. The answer is whether it was still to come."""

    id: str


def scheduled_ref(application: bytes) -> Ref:
    """The actor of the scheduled presses of an application."""
    return Ref(ScheduledPresses.kind, application, application)


class ScheduledPresses(Actor):
    """The scheduled presses of one application, whose id is both `ref.parent` and `ref.id`."""

    kind: ClassVar[str] = "scheduledPresses"
    noun: ClassVar[str] = "application"

    __slots__ = ("_due",)

    def __init__(self, system: Any, ref: Any) -> None:
        self._due = DueTimes()
        super().__init__(system, ref)

    def load(self) -> bool:
        prefix = keys.scheduled_prefix(self.ref.id)
        end = keys.prefix_end(prefix)
        assert end is not None
        self._due = DueTimes()
        for key, _ in self.system.journal.range(keys.META, prefix, end):
            due_ms, id = keys.scheduled_of_key(key)
            self._due.set((self.ref.id, id), due_ms)
        return True

    def on_schedule_press(self, message: SchedulePress) -> Scheduled:
        """Store a press. Raises `NotFound` for the workflow, `Invalid` for the version, the button, or the time."""
        application, body, limits = self.ref.id, message.body, self.system.limits
        if not 0 < len(message.id) <= ID_CHARS_MAX:
            raise Invalid(f"runId: has {len(message.id)} characters; give 1 to {ID_CHARS_MAX}.")
        check_nesting(body.payload, "payload")
        find_button(self.system.journal.get, application, message.flow, body)
        now_ms = self.system.clock.wall_ms()
        due_ms = _due_ms(message, now_ms)
        origin = (
            message.origin if due_ms < now_ms + _PAUSE_MS else msgspec.structs.replace(message.origin, hops=0)
        )
        raw = encode([message.flow, msgspec.to_builtins(body), origin.id, origin.type, origin.hops])
        if len(raw) > limits.scheduled_press_bytes_max:
            raise PayloadTooLarge(
                f"payload: the press has {len(raw)} bytes; at most {limits.scheduled_press_bytes_max} are stored."
            )
        place = (application, _hashed(message.id))
        is_update = self._remove(place)
        if len(self._due) >= limits.scheduled_presses_max:
            raise PayloadTooLarge(
                f"The application has {len(self._due)} scheduled runs; cancel some before you add others."
            )
        self.put(keys.META, keys.scheduled_key(application, due_ms, place[1]), raw)
        self._due.set(place, due_ms)
        self._note()
        return Scheduled(due_ms, is_update)

    def on_cancel_press(self, message: CancelPress) -> bool:
        """Remove a press."""
        was_there = self._remove((self.ref.id, _hashed(message.id)))
        self._note()
        return was_there

    def on_fire_timers(self, message: FireTimers) -> list[Firing]:  # noqa: ARG002
        """Press the buttons whose time has come, at most `_AT_ONCE`; return that no timers have fired."""
        application = self.ref.id
        now_ms = self.system.clock.wall_ms()
        for _ in range(_AT_ONCE):
            first = self._due.first
            if first is None or first[0] > now_ms:
                break
            due_ms, place = first
            raw = self.system.journal.get(keys.META, keys.scheduled_key(application, due_ms, place[1]))
            assert raw is not None
            self._remove(place)
            flow, body, *origin = decode(raw)
            try:
                press(self, flow, msgspec.convert(body, ButtonPress), Origin(*origin))
            except NotFound:
                continue  # the workflow is deleted
            except Invalid as refusal:
                dropped = Dropped(application, flow, None, f"A scheduled run is dropped: {refusal.message}")
                self.after_commit(partial(self.system.component(TriggerQueue).drop, dropped))
        self._note()
        return []

    def _remove(self, place: Place) -> bool:
        """Remove a press that is still to come; False if there is none."""
        due_ms = self._due.get(place)
        if due_ms is None:
            return False
        self.delete(keys.META, keys.scheduled_key(self.ref.id, due_ms, place[1]))
        self._due.set(place, None)
        return True

    def _note(self) -> None:
        """Let who waits for due times know of the first one, once it is on disk."""
        note = partial(self.system.component(DueTimes).set, (self.ref.id, self.ref.id), self._due.first_ms)
        self.after_commit(note)


def _due_ms(message: SchedulePress, now_ms: int) -> int:
    due_ms = message.due_ms if message.after_ms is None else now_ms + message.after_ms
    assert due_ms is not None
    if due_ms > now_ms + SECONDS_MAX * 1000:
        raise Invalid(
            f"The time is {iso(due_ms)}; give one of the next {SECONDS_MAX} seconds, which are a year."
        )
    return max(due_ms, now_ms)


def _hashed(id: str) -> bytes:
    return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), digest_size=keys.ID_BYTES).digest()
