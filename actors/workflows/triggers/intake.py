"""The intake: a trigger's record is stored in the batch of its cause, so an acknowledged cause is a durable trigger.

Owns the form of the record. It contains what the run is given by value, since the cause may be gone when its turn
comes. After the commit it is in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from trunkline.actors.core.records.placement import home_of_actor
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.origin import HOPS_MAX, Origin
from trunkline.actors.workflows.flows.run_records import RUN_TOPIC
from trunkline.actors.workflows.triggers.index import Watcher
from trunkline.actors.workflows.triggers.queue import Dropped, Queued, TriggerQueue
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode
from trunkline.store.errors import StoreDamaged, StoreError
from trunkline.store.snapshot import Snapshot

Effect = Callable[[], None]
"""What is done after a commit."""

_log = structlog.get_logger("trunkline.flows")
_NOBODY: Final = Origin("", "")


class Cause(msgspec.Struct, frozen=True, array_like=True):
    """What the run is told: `data` and `more` are fields of its payload, `time_ms` is its time.

    Runs with the same `trigger_id` are one after the other. `replays` is the number of the run that is repeated.
    `device` is a device whose name and tags the run is told as they are at its time.
    """

    trigger_id: str
    data: Any
    time_ms: int
    more: dict[str, Any] = {}
    origin: Origin | None = None
    replays: int | None = None
    device: bytes | None = None


class TriggerRecord(msgspec.Struct, frozen=True, array_like=True):
    """A stored trigger."""

    application: bytes
    flow: bytes
    version: str | None
    index: int
    type: str
    key: str
    attempts: int
    cause: Cause

    def encoded(self) -> bytes:
        """The stored bytes: MessagePack, which takes a tenth of the time of CBOR; CBOR where it has no form."""
        try:
            return _encoder.encode(self)
        except OverflowError:  # an integer of more than 64 bits
            return self.as_cbor()

    def as_cbor(self) -> bytes:
        """The form of older stores, which has integers of any size."""
        cause = self.cause
        by = cause.origin or _NOBODY
        return encode(
            [
                self.application,
                self.flow,
                self.version,
                self.index,
                self.type,
                self.key,
                self.attempts,
                cause.trigger_id,
                cause.data,
                cause.time_ms,
                cause.more,
                by.id,
                by.type,
                by.hops,
                cause.replays,
                cause.device,
            ]
        )


def decode_trigger(raw: bytes) -> TriggerRecord:
    """The trigger of which `raw` are the stored bytes."""
    if raw[0] != _CBOR:
        return _decoder.decode(raw)
    application, flow, version, index, type, key, attempts, *cause = decode(raw)
    trigger_id, data, time_ms, more, by_id, by_type, hops, replays, device = cause
    origin = Origin(by_id, by_type, hops) if by_type else None
    return TriggerRecord(
        application,
        flow,
        version,
        index,
        type,
        key,
        attempts,
        Cause(trigger_id, data, time_ms, more, origin, replays, device),
    )


_CBOR: Final = 0x90
"""The first byte of a record in CBOR, an array of sixteen; those in MessagePack begin with another."""
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(TriggerRecord)


def stored_triggers(application: bytes | None, snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    """The keys and the bytes of all triggers and markers in the store, without those that are damaged.

    With an application only its triggers, and the markers with their numbers: the keys are in one order for all.
    """
    found: list[tuple[bytes, bytes]] = []
    for view in snapshot.keys(keys.TRIGGERS, b"", None):
        key = bytes(view)
        try:
            raw = snapshot.get(keys.TRIGGERS, key)
        except StoreDamaged as damage:  # it must not prevent the start; `trunkline check` tells of it as well
            _log.error("trigger not run", key=key.hex(), reason=str(damage))
            continue
        if raw is None:
            continue
        is_trigger = len(key) == keys.TRIGGER_KEY_BYTES
        if application is None or not is_trigger or decode_trigger(raw).application == application:
            found.append((key, raw))
    if application is None:
        return found
    numbers = {keys.trigger_number(key) for key, _ in found if len(key) == keys.TRIGGER_KEY_BYTES}
    return [each for each in found if keys.trigger_number(each[0]) in numbers]


def trigger_problems(snapshot: Snapshot) -> Iterator[str]:
    """What is wrong with triggers and markers, which have forms of their own."""
    for view in snapshot.keys(keys.TRIGGERS, b"", None):
        key = bytes(view)
        with suppress(StoreDamaged):  # a wrong checksum is told by the check of the store
            raw = snapshot.get(keys.TRIGGERS, key)
            if raw is None:
                continue
            try:
                _check_form(key, raw)
            except (ValueError, IndexError) as error:  # msgspec's errors are ValueErrors
                yield f"{keys.TRIGGERS} {key.hex()}: the value is not a valid trigger: {error}"


def _check_form(key: bytes, raw: bytes) -> None:
    """Raise `ValueError` unless a value is what its key says: a trigger, or the marker of what a run has done."""
    if len(key) > keys.TRIGGER_KEY_BYTES:
        decode(raw)
    else:
        decode_trigger(raw)


def record_for(application: bytes, watcher: Watcher, cause: Cause) -> TriggerRecord:
    """The record of a new trigger."""
    return TriggerRecord(
        application, watcher.flow, watcher.version, watcher.position, watcher.type, watcher.key, 0, cause
    )


def stage(actor: Actor, watchers: Iterable[Watcher], cause: Cause) -> list[Queued]:
    """Stage a trigger for each watcher in the turn of an actor: of an application, or in one; return them."""
    return _stage(actor, watchers, cause, actor.put, actor.after_commit)


def stage_refused(actor: Actor, watchers: Iterable[Watcher], cause: Cause) -> None:
    """Store triggers of a turn that is refused, so nothing else of it is stored: in a batch of their own."""
    batch, effects = Batch(), list[Effect]()
    _stage(actor, watchers, cause, batch.put, effects.append)
    try:
        group = actor.system.journal.submit(batch)
    except StoreError:  # too much waits for the disk: the caller is refused in any case
        return
    for effect in effects:
        group.then(effect)


def _stage(
    actor: Actor,
    watchers: Iterable[Watcher],
    cause: Cause,
    put: Callable[[str, bytes, bytes], None],
    after_commit: Callable[[Effect], None],
) -> list[Queued]:
    queue = actor.system.component(TriggerQueue)
    ref = actor.ref
    home = home_of_actor(ref)
    application = ref.id if ref.kind == "application" else ref.parent
    assert home.id is not None
    entries: list[Queued] = []
    for watcher in watchers:
        if cause.origin is not None and cause.origin.hops >= HOPS_MAX:
            reason = f"{HOPS_MAX} runs have caused each other, one after the other; the next one is dropped."
            after_commit(partial(queue.drop, Dropped(application, watcher.flow, None, reason)))
            continue
        if watcher.guard is not None and not watcher.guard(cause.data):
            shows_all = actor.system.has_subscribers(Ref("flow", application, watcher.flow), RUN_TOPIC)
            if not shows_all:
                after_commit(partial(queue.pass_over, application, watcher.flow, watcher.version))
                continue
        number = queue.next_number()
        key = keys.trigger_key(number, home.place, home.id)
        raw = record_for(application, watcher, cause).encoded()
        put(keys.TRIGGERS, key, raw)
        entries.append(Queued(number, key, application, watcher.flow, cause.trigger_id, raw))
    if entries:
        after_commit(partial(queue.add, entries))
    return entries
