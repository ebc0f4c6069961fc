"""Silence: which triggers of inactivity of a device are due, and which have fired since it reported last.

A trigger counts from the last report that arrived, whatever time the report itself has; from when the workflow was
saved or enabled, if that was later. Without a report the creation of the device stands for it. It fires once, until the
device reports again: what has fired is kept until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.actors.workflows.flows.due_times import Since
from trunkline.actors.workflows.triggers.index import Watcher
from trunkline.store.codec import decode, encode

Fired = dict[tuple[bytes, str], int]
"""By workflow and trigger: when the period began, in ms, in which it has fired. Kept until the device reports."""


class Silence(NamedTuple):
    """What is due now, what has fired then, and when to look again; None: when the device has reported."""

    due: list[Watcher]
    fired: Fired
    next_ms: int | None


def silence_of(
    watchers: Iterable[Watcher], since: Since, active_ms: int, fired: Fired, now_ms: int
) -> Silence:
    """The silence of a device that was active at `active_ms`: it has reported, or was created."""
    due: list[Watcher] = []
    after: Fired = {}
    next_ms: int | None = None
    for watcher in watchers:
        began_ms = since.get((watcher.flow, watcher.position))
        if began_ms is None:
            continue  # its change is not on disk yet; then somebody looks again
        began_ms = max(began_ms, active_ms)
        name = (watcher.flow, f"{watcher.meta.get('uiId') or watcher.key} {watcher.config['seconds']}")
        length_ms = round(watcher.config["seconds"] * 1000)
        due_ms = began_ms + length_ms
        fired_ms = fired.get(name)
        if fired_ms is not None and (fired_ms >= began_ms or fired_ms > now_ms):
            after[name] = fired_ms  # later than its begin, if the clock was set back
        elif due_ms <= now_ms:
            after[name] = began_ms
            due.append(watcher)
        else:
            # It was active in the time to come if the clock was set back, and may report again from now on.
            look_ms = min(due_ms, now_ms + length_ms)
            next_ms = look_ms if next_ms is None else min(next_ms, look_ms)
    return Silence(due, after, next_ms)


def last_sign_ms(head: Head, doc: Doc) -> int:
    """When the last report of a device arrived; without one, when it was created."""
    created_ms: int = doc["creationDate"]
    return head.arrived_ms if head.arrived_ms >= 0 else created_ms


def encode_fired(fired: Fired) -> bytes:
    """The stored bytes."""
    return encode([[*name, began_ms] for name, began_ms in fired.items()])


def decode_fired(raw: bytes | None) -> Fired:
    """That of which `raw` are the stored bytes."""
    return {} if raw is None else {(flow, name): began_ms for flow, name, began_ms in decode(raw)}
