"""The active actors of an application: the busiest first, and what one device has of its throttles.

Owns the choice and what is shown. Reads only memory: the mailboxes outlive the memory of their actors, and asking for
them activates nothing. A page is chosen with a heap, in slices between which others have their turn: a tenth of a
second for 100,000 actors, a millisecond at a time (`tests/bench/overview.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Any, Final

import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.page import page_fields
from trunkline.actors.core.runtime.mailbox import Mailbox
from trunkline.actors.core.runtime.ref import APPLICATION, Ref
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.fleet.devices.commands.links import Links
from trunkline.actors.fleet.devices.commands.waiting import Waiting
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.reads import open_declared
from trunkline.actors.fleet.devices.state.backlog import BUCKET, BacklogLane
from trunkline.actors.presentation.overview.actor_messages import (
    ActorList,
    ActorPage,
    ActorView,
    DeviceActorView,
    ThrottleView,
)
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.limits.window import SlidingWindow, Verdict
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.limits.table import Rate
    from trunkline.store.snapshot import Snapshot

_SLICE_LENGTH: Final = 1000
"""Mailboxes that are looked at without a pause: a millisecond."""
_LISTED_MAX: Final = 10_000
"""Actors that pages show, in their order: the heap of a page has so many entries."""
_NAMED: Final[dict[str, Kind]] = {kind.name: kind for kind in (DEVICE, DATA_TABLE, FLOW)}
"""Kinds of actors whose records have a name."""
DEVICE_BUCKETS: Final = ("send_state", "send_command", "set_connection_status")

_VALUES: Final[dict[str, Callable[[Mailbox, float], float]]] = {
    "handled": lambda box, _now_s: box.handled,
    "mailboxDepth": lambda box, _now_s: box.depth,
    "oldestMessageAgeMs": lambda box, now_s: box.oldest_message_age_s(now_s),
    "restarts": lambda box, _now_s: box.restarts,
    "refused": lambda box, _now_s: box.refused,
    "lastUsed": lambda box, _now_s: box.last_used_s,
    "subscribers": lambda box, _now_s: box.subscriber_count,
}


# Lists.


async def list_actors(system: System, application: bytes, query: ActorPage) -> ActorList:
    """A page of the active actors of an application. Raises `Invalid` for an unknown kind and a page too far."""
    known = sorted(kind.kind for kind in system.kinds)
    if query.kind is not None and query.kind not in known:
        raise Invalid(
            f"kind: there are no actors of the kind {query.kind!r}; give one of {', '.join(known)}."
        )
    end = (query.page + 1) * query.per_page
    if end > _LISTED_MAX:
        raise Invalid(
            f"page: lists of actors show the first {_LISTED_MAX}; sort by another field, or give a kind."
        )
    best, total = await _choose(system, application, query, end)
    best.sort(reverse=True)
    shown = best[end - query.per_page :]
    now_ms, now_s = system.clock.wall_ms(), system.clock.monotonic_s()
    with system.store.snapshot() as snapshot:
        items = [_show(snapshot, box, now_ms, now_s) for _, _, box in shown]
    return ActorList(
        **page_fields(items, total, query),
        sort_field=query.sort_field,
        application_id=application.hex(),
        time=iso(now_ms),
    )


async def _choose(
    system: System, application: bytes, query: ActorPage, most: int
) -> tuple[list[tuple[float, Ref, Mailbox]], int]:
    """The first actors in the order of the query, at most so many, and how many match."""
    value_of, sign = _VALUES[query.sort_field], 1 if query.sort_direction == "desc" else -1
    best: list[tuple[float, Ref, Mailbox]] = []
    total = 0
    boxes = list(system.mailboxes())
    for start in range(0, len(boxes), _SLICE_LENGTH):
        now_s = system.clock.monotonic_s()
        for box in boxes[start : start + _SLICE_LENGTH]:
            ref = box.ref
            if _application_of(ref) != application or (query.kind is not None and ref.kind != query.kind):
                continue
            total += 1
            entry = sign * value_of(box, now_s), ref, box
            if len(best) < most:
                heappush(best, entry)
            elif entry > best[0]:
                heappushpop(best, entry)
        await trio.lowlevel.checkpoint()
    return best, total


def _application_of(ref: Ref) -> bytes:
    """The application to which an actor belongs, which may be the actor."""
    return ref.id if ref.kind == APPLICATION else ref.parent


def _show(snapshot: Snapshot, box: Mailbox, now_ms: int, now_s: float) -> ActorView:
    return ActorView(
        kind=box.ref.kind,
        id=box.ref.id.hex(),
        name=_name_of(snapshot, box.ref),
        **_statistics(box, now_ms, now_s),
    )


def _name_of(snapshot: Snapshot, ref: Ref) -> str | None:
    kind = _NAMED.get(ref.kind)
    found = None if kind is None else records.find(snapshot, kind, ref.parent, ref.id)
    return None if found is None else str(found.doc["name"])


def _statistics(box: Mailbox, now_ms: int, now_s: float) -> dict[str, Any]:
    """The fields of `ActorStatistics`."""
    return {
        "mailbox_depth": box.depth,
        "oldest_message_age_ms": round(box.oldest_message_age_s(now_s) * 1000),
        "handled": box.handled,
        "refused": box.refused,
        "restarts": box.restarts,
        "last_error": box.last_error,
        "subscribers": box.subscriber_count,
        "last_used": iso(now_ms - round((now_s - box.last_used_s) * 1000)),
    }


# One device.


def show_device_actor(system: System, application: bytes, device: bytes) -> DeviceActorView:
    """The actor of a device, and its throttles. Activates nothing, and spends no call.

    Raises `NotFound` if there is no such device.
    """
    with system.store.snapshot() as snapshot:
        open_declared(snapshot, application, device)
        waiting = Waiting(snapshot.get(keys.TIMELINE, keys.waiting_key(device)))
    box = system.mailbox(Ref(DEVICE.name, application, device))
    now_ms, now_s = system.clock.wall_ms(), system.clock.monotonic_s()
    return DeviceActorView(
        device_id=device.hex(),
        application_id=application.hex(),
        time=iso(now_ms),
        active=box is not None,
        links=int(system.component(Links).of(device) is not None),
        commands_waiting=len(waiting.commands) - len(waiting.expired(now_ms)),
        throttles=[*_throttles(system, application, box, now_s)],
        **_statistics(box, now_ms, now_s) if box is not None else _NO_STATISTICS,
    )


_NO_STATISTICS: Final[dict[str, Any]] = dict.fromkeys(
    ("mailbox_depth", "oldest_message_age_ms", "handled", "refused", "restarts", "subscribers"), 0
)


def _throttles(
    system: System, application: bytes, box: Mailbox | None, now_s: float
) -> Iterable[ThrottleView]:
    """The throttles of a device, and that of the backlogs of its application. One that is off is left out."""
    for bucket in DEVICE_BUCKETS:
        rate: Rate | None = getattr(system.limits, bucket)
        if rate is not None:
            window = (box.windows or {}).get(bucket) if box is not None else None
            yield _show_throttle(bucket, "device", (window or SlidingWindow(rate)).peek(now_s))
    verdict = system.component(BacklogLane).peek(application)
    if verdict is not None:
        yield _show_throttle(BUCKET, "application", verdict)


def _show_throttle(bucket: str, per: Any, verdict: Verdict) -> ThrottleView:
    return ThrottleView(
        bucket=bucket,
        per=per,
        limit=verdict.limit,
        window_seconds=verdict.window_s,
        remaining=verdict.remaining,
        reset_seconds=verdict.reset_s,
    )
