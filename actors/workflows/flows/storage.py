"""What the runs of a workflow keep: storage entries, and the states of its nodes. A part of the workflow actor.

Storage entries are shown and changed by the API too. The states of nodes are not: whether a latch is set, when a
throttle was passed, and the value that a node has compared last. Both belong to a generation, and clearing the storage
begins the next one.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.workflows.flows.storage_messages import (
    AddToStorageEntry,
    ClearStorage,
    OldState,
    PassThrottle,
    ReplaceNodeState,
    SetLatch,
    SetStorageEntry,
)
from trunkline.actors.workflows.flows.stored import StoredFlow
from trunkline.actors.workflows.flows.versions import Get
from trunkline.store import keys
from trunkline.store.codec import decode, encode

STATE_BYTES_MORE: Final = 100
"""Added to the bytes of the state of a node: about what its key takes."""


class FlowStorage(StoredFlow):
    """The entries and states of one workflow. `sums` has their numbers and bytes."""

    __slots__ = ()

    # Storage entries.

    def on_set_storage_entry(self, message: SetStorageEntry) -> None:
        """Set an entry, or remove it if the body has no value."""
        name, value = message.body.key, message.body.value
        entry = self._entry(name)
        if value is not msgspec.UNSET:
            check_nesting(value, "value")
            self._set(name, value, entry)
        elif entry is not None:
            self.delete(keys.FLOWS, self._entry_key(name))
            self.add_sums(keys=-1, bytes=-entry.size)

    def on_add_to_storage_entry(self, message: AddToStorageEntry) -> float:
        """Add to the number of an entry, 0 if there is none; the answer is the sum."""
        name, by = message.key, message.number
        entry = self._entry(name)
        number = 0 if entry is None else entry.value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Invalid(
                f"key: the storage entry {name!r} is not a number; store a number there, or use another key."
            )
        total = _sum(number, by)
        self._set(name, total, entry)
        return total

    def on_clear_storage(self, message: ClearStorage) -> None:  # noqa: ARG002
        """Begin the next generation of entries and states; the sweeper removes the old ones."""
        sums, ids = self.sums, (self.ref.parent, self.ref.id, self.sums["generation"])
        if sums["keys"] or sums["states"]:
            for prefix in (keys.flow_storage_prefix(*ids), keys.flow_states_prefix(*ids)):
                self.put(keys.META, keys.flow_sweep_key(prefix), encode(True))
            self.add_sums(generation=1, keys=-sums["keys"], bytes=-sums["bytes"], states=-sums["states"])

    def _entry_key(self, name: str) -> bytes:
        return keys.flow_storage_key(self.ref.parent, self.ref.id, self.sums["generation"], name)

    def _entry(self, name: str) -> Entry | None:
        raw = self.system.journal.get(keys.FLOWS, self._entry_key(name))
        return None if raw is None else Entry(*decode(raw))

    def _set(self, name: str, value: Any, old: Entry | None) -> None:
        limits = self.system.limits
        size = len(msgspec.json.encode(value))
        if size > limits.flow_storage_value_bytes_max:
            raise Invalid(
                f"value: has {size} bytes as JSON; a storage entry has at most {limits.flow_storage_value_bytes_max}."
            )
        size += len(name.encode())
        freed = 0 if old is None else old.size
        if old is None and self.sums["keys"] >= limits.flow_storage_entries_max:
            raise PayloadTooLarge(
                f"The workflow has {self.sums['keys']} storage entries, which is its limit; remove some."
            )
        if self.sums["bytes"] + size - freed > limits.flow_storage_bytes_max:
            raise PayloadTooLarge(
                f"The storage of the workflow would have {self.sums['bytes'] + size - freed} bytes; "
                f"at most {limits.flow_storage_bytes_max} are allowed."
            )
        self.put(keys.FLOWS, self._entry_key(name), encode([name, value, size]))
        self.add_sums(keys=1 if old is None else 0, bytes=size - freed)

    # States of nodes.

    def on_set_latch(self, message: SetLatch) -> tuple[bool, bool]:
        """Set a latch that is not set, or reset one that is; the answer is whether it was set, and whether it is."""
        was = self._state(message.node) is True
        now = not message.resets if was else message.sets
        if now != was:
            self._put_state(message.node, now or None)
        return was, now

    def on_pass_throttle(self, message: PassThrottle) -> tuple[bool, int | None]:
        """Pass a throttle, or not; the answer is whether, and the milliseconds since it was last passed."""
        now_ms, last_ms = self.system.clock.wall_ms(), self._state(message.node)
        since_ms = now_ms - last_ms if type(last_ms) is int else None
        passes = since_ms is None or not 0 <= since_ms < message.every_ms
        if passes:
            self._put_state(message.node, now_ms)
        return passes, since_ms

    def on_replace_node_state(self, message: ReplaceNodeState) -> OldState:
        """Replace the state of a node; the answer has the old one, null if there was none."""
        old = self._state(message.node)
        if message.state is not None:
            check_nesting(message.state, "state")
        self._put_state(message.node, message.state)
        return OldState(old)

    def _state_key(self, node: str) -> bytes:
        return keys.flow_state_key(self.ref.parent, self.ref.id, self.sums["generation"], node)

    def _state(self, node: str) -> Any:
        raw = self.system.journal.get(keys.FLOWS, self._state_key(node))
        return None if raw is None else decode(raw)

    def _put_state(self, node: str, state: Any) -> None:
        key = self._state_key(node)
        old = self.system.journal.get(keys.FLOWS, key)
        freed = 0 if old is None else len(old) + STATE_BYTES_MORE
        if state is None:
            if old is not None:
                self.delete(keys.FLOWS, key)
                self.add_sums(states=-freed)
            return
        raw, limits = encode(state), self.system.limits
        if len(raw) > limits.flow_storage_value_bytes_max:
            raise Invalid(
                f"The node would keep a value of {len(raw)} bytes; "
                f"at most {limits.flow_storage_value_bytes_max} are allowed."
            )
        total = self.sums["states"] - freed + len(raw) + STATE_BYTES_MORE
        if total > limits.flow_states_bytes_max:
            raise PayloadTooLarge(
                f"The states of the nodes of the workflow would have {total} bytes; at most "
                f"{limits.flow_states_bytes_max} are allowed. Clear the storage of the workflow to start again."
            )
        self.put(keys.FLOWS, key, raw)
        if total != self.sums["states"]:
            self.add_sums(states=total - self.sums["states"])


class Entry(NamedTuple):
    """A storage entry as it is stored; `size` is that of key and value as JSON."""

    name: str
    value: Any
    size: int


def stored_entry(get: Get, application: bytes, flow: bytes, name: str) -> Entry | None:
    """The storage entry of this name, if there is one."""
    head = get(keys.FLOWS, keys.flow_head_key(application, flow))
    generation = 0 if head is None else decode(head)["generation"]
    raw = get(keys.FLOWS, keys.flow_storage_key(application, flow, generation, name))
    return None if raw is None else Entry(*decode(raw))


def _sum(number: float, by: float) -> float:
    """The sum as in JavaScript: of doubles, and whole where it can be."""
    try:
        total = float(number) + float(by)
    except OverflowError:
        total = math.inf
    if not math.isfinite(total):
        raise Invalid(f"number: {by} cannot be added, the sum is not a finite number.")
    return int(total) if total.is_integer() and abs(total) <= 2**53 else total
