"""Retention: removes in the background what is older than the limits say (`state_keep_days` and its neighbours).

What an application archives is not removed before it is archived (`platform/applications/archive_days.py`).

Owns when and in which order entries are searched and removed. Does not own what is too old and may go: that is decided
beside the data (`fleet/devices/state/retention.py`, `data/events/retention.py`, `engine/expired_runs.py`, the audit
log), and each actor removes its own entries, in turns like any other, so that nothing is removed which a turn has just
changed.

One owner after the other is searched: each application (its devices, its events, its workflows, its counts), and the
server as a whole (the audit logs of organizations). A search reads a bounded number of devices in a worker thread and
finds a bounded number of entries; these are one batch, then the task sleeps. What was found tells when the owner's next
entry will be too old, so an owner with nothing to remove is not searched again before that, or for a day. All this is
in memory: after a restart every owner is searched once, and what is too old is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog
import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kept_answers import expired_answers, oldest_kept_ms, remove_expired
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events.retention import ExpireEvents, expired_events
from trunkline.actors.engine.expired_runs import expired_runs
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.retention import (
    NEVER_MS,
    ExpireData,
    Oldest,
    Search,
    expired_data,
    kept_since_ms,
    older_hours,
)
from trunkline.actors.people.audit.messages import AUDIT_ENTRY, ExpireEntries
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.actors.platform.applications.archive_days import oldest_unarchived_ms
from trunkline.actors.platform.applications.messages import ExpireCounts
from trunkline.actors.workflows.flows.kind import FLOW
from trunkline.actors.workflows.flows.run_records import ExpireRuns
from trunkline.limits.table import DAY_MS, Limits
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message
    from trunkline.store.snapshot import Snapshot

_KEYS_PER_ENTRY: Final = 10
"""Keys of an entry of an audit log: its record and its index entries."""

_KINDS: Final[dict[type[Message], tuple[str, ...]]] = {
    ExpireData: ("state", "command", "logEntry", "payloadCount"),
    ExpireEvents: ("event",),
    ExpireRuns: ("flowRun", "flowMinute"),
    ExpireCounts: ("payloadCount",),
    ExpireEntries: ("auditEntry",),
}
"""By message: what its answer counts, in this order."""

_log = structlog.get_logger("trunkline.retention")


class Part(NamedTuple):
    """A part of a search: the messages that remove what was found, as one batch.

    The search goes on at `start`, or at `past` if none of the messages was accepted; it has ended where that is None.
    `wait_ms` is the time until the next entry of this part is too old.
    """

    asks: list[Ask]
    start: bytes | None
    past: bytes | None
    wait_ms: int
    answers: Sequence[bytes] = ()
    """Owners of answers that have expired; these are removed without their owners, which may be deleted."""


class Step(NamedTuple):
    """A step of a search: what is searched, and where it goes on; `start` is empty at the beginning."""

    owner: bytes
    start: bytes
    limits: Limits
    now_ms: int


class Searching(Protocol):
    """Finds what a step may remove."""

    def __call__(self, snapshot: Snapshot, step: Step) -> Part: ...


class Retention:
    """The background task of a system, and its counts of removed entries by kind."""

    def __init__(self, system: System) -> None:
        self.removed = {"answer": 0} | {kind: 0 for kinds in _KINDS.values() for kind in kinds}
        self._system = system
        self._due_s: dict[bytes, float] = {}

    async def run(self) -> None:
        """Search until cancelled: the owners that are due, every `purge_interval_s`."""
        while True:
            await trio.sleep(self._system.limits.purge_interval_s)
            try:
                await self.remove_expired()
            except (StoreError, DomainError) as refusal:
                _log.warning("removal of expired entries put off", reason=str(refusal))
            except Exception:  # noqa: BLE001 - data that cannot be removed must not stop the server
                _log.exception("removal of expired entries failed")

    async def remove_expired(self) -> None:
        """Remove everything that is too old of the owners that are due. Raises StoreError or DomainError."""
        now_s = self._system.clock.monotonic_s()
        owners = await self._system.read(_owners)
        self._due_s = {owner: self._due_s.get(owner, 0.0) for owner in owners}
        for owner in owners:
            if self._due_s[owner] <= now_s:
                searches = _OF_SERVER if owner == ROOT else _OF_APPLICATION
                wait_ms = min([await self._search(search, owner) for search in searches])
                wait_s = max(self._system.limits.retention_interval_s, min(wait_ms, DAY_MS) / 1000)
                self._due_s[owner] = now_s + wait_s

    async def _search(self, search: Searching, owner: bytes) -> int:
        """Remove what one search finds, part by part; return the time in ms until there will be more."""
        system, limits = self._system, self._system.limits
        start: bytes | None = b""
        wait_ms = NEVER_MS
        while start is not None:
            step = Step(owner, start, limits, system.clock.wall_ms())
            part = await system.read(partial(search, step=step))
            accepted = await self._remove(part.asks)
            await self._remove_answers(part.answers)
            wait_ms = min(wait_ms, part.wait_ms)
            start = part.start if accepted or not part.asks else part.past
            if start is not None:
                await trio.sleep(limits.retention_pause_s)
        return wait_ms

    async def _remove(self, asks: list[Ask]) -> bool:
        """Let the actors remove their entries, as one batch; return whether one of them did."""
        if not asks:
            return False
        accepted = False
        answers = await self._system.ask_each(asks)
        for (_, message), answer in zip(asks, answers, strict=True):
            if isinstance(answer, DomainError):
                continue  # its device or its application was deleted
            for kind, number in zip(_KINDS[type(message)], answer, strict=True):
                self.removed[kind] += number
                accepted = accepted or number > 0
        return accepted

    async def _remove_answers(self, owners: Sequence[bytes]) -> None:
        """Remove expired answers of calls, owner by owner."""
        system = self._system
        for owner in owners:
            removed = system.limits.removed_entries_max
            while removed == system.limits.removed_entries_max:
                batch, oldest_ms = Batch(), oldest_kept_ms(system.limits, system.clock.wall_ms())
                removed = remove_expired(system.journal.get, batch, owner, oldest_ms, removed)
                if batch:
                    await system.journal.submit(batch).wait()
                    await trio.sleep(system.limits.retention_pause_s)
                self.removed["answer"] += removed


def _owners(snapshot: Snapshot) -> list[bytes]:
    prefix = keys.record_prefix(APPLICATION.name, ROOT)
    applications = snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))
    return [ROOT, *(bytes(key[-keys.ID_BYTES :]) for key in applications)]


# Searches.


def search_devices(snapshot: Snapshot, step: Step) -> Part:
    """Search the devices of an application in the order of their ids, from the id `start` on."""
    application, limits = step.owner, step.limits
    unarchived_ms = oldest_unarchived_ms(snapshot, application, "devices")
    oldest = Oldest.of(limits, step.now_ms).before(unarchived_ms)
    if not any(oldest):
        return Part([], None, None, NEVER_MS)
    return _search_each(
        snapshot, step, DEVICE, lambda device, most: expired_data(snapshot, device, oldest, most)
    )


def search_flows(snapshot: Snapshot, step: Step) -> Part:
    """Search the workflows of an application in the order of their ids, from the id `start` on."""
    oldest_ms = kept_since_ms(step.limits.run_records_keep_days, step.now_ms)
    return _search_each(
        snapshot, step, FLOW, lambda flow, most: expired_runs(snapshot, step.owner, flow, oldest_ms, most)
    )


def _search_each(
    snapshot: Snapshot,
    step: Step,
    kind: Kind,
    find: Callable[[bytes, int], Search[ExpireData] | Search[ExpireRuns]],
) -> Part:
    """Search the records of a kind; `find` is given an id, and how many entries may be removed of it."""
    application, limits = step.owner, step.limits
    asks: list[Ask] = []
    wait_ms, left = NEVER_MS, limits.removed_entries_max
    prefix = keys.record_prefix(kind.name, application)
    found_keys = snapshot.keys(keys.RECORDS, prefix + step.start, keys.prefix_end(prefix))
    for number, key in enumerate(found_keys):
        id = bytes(key[-keys.ID_BYTES :])
        if number >= limits.searched_devices_max or len(asks) >= limits.expired_devices_max:
            return Part(asks, id, id, wait_ms)
        found = find(id, left)
        wait_ms = min(wait_ms, found.wait_ms)
        if found.message is not None:
            asks.append((Ref(kind.name, application, id), found.message))
            left -= found.message.entries
        if not found.is_complete:
            return Part(asks, id, id + b"\x00", wait_ms)
    return Part(asks, None, None, wait_ms)


def search_events(snapshot: Snapshot, step: Step) -> Part:
    """Search the events of an application, those first that were not changed for longest."""
    application = step.owner
    oldest_ms = kept_since_ms(step.limits.event_keep_days, step.now_ms)
    unarchived_ms = oldest_unarchived_ms(snapshot, application, "events")
    # An event is archived by its creation, which is never after its last change.
    oldest_ms = oldest_ms if unarchived_ms is None else min(oldest_ms, unarchived_ms)
    if not oldest_ms:
        return Part([], None, None, NEVER_MS)
    events, next_ms = expired_events(snapshot, application, oldest_ms, step.limits.removed_entries_max)
    message = ExpireEvents(events=events, oldest_ms=oldest_ms)
    asks: list[Ask] = [(Ref("eventLog", application, application), message)] if events else []
    if next_ms is None:
        return Part(asks, None, None, NEVER_MS)
    return Part(asks, b"" if next_ms < oldest_ms else None, None, next_ms - oldest_ms)


def search_counts(snapshot: Snapshot, step: Step) -> Part:
    """Search the payload counts of an application."""
    application = step.owner
    oldest_ms = kept_since_ms(step.limits.payload_count_keep_days, step.now_ms)
    if not oldest_ms:
        return Part([], None, None, NEVER_MS)
    first, end = keys.app_counts_key(application, 0), keys.app_counts_key(application, keys.HOUR_MAX)
    counted = (key for key in snapshot.keys(keys.COUNTS, first, end) if len(key) == keys.HOUR_KEY_BYTES)
    hours_counted = (int.from_bytes(key[-4:], "big") for key in counted)
    hours, wait_ms = older_hours(hours_counted, oldest_ms, step.limits.removed_entries_max)
    asks: list[Ask] = [(Ref("application", ROOT, application), ExpireCounts(hours=hours))] if hours else []
    return Part(asks, None if wait_ms else b"", None, wait_ms)


def search_answers(snapshot: Snapshot, step: Step) -> Part:
    """Search the answers of calls with an Idempotency-Key, by their owners, from the prefix `start` on."""
    oldest_ms = oldest_kept_ms(step.limits, step.now_ms)
    found = expired_answers(snapshot, step.owner, step.start, oldest_ms, step.limits.searched_devices_max)
    return Part([], found.start, found.start, found.wait_ms, found.owners)


def search_audit_logs(snapshot: Snapshot, step: Step) -> Part:
    """Search the audit logs of organizations and users, in the order of their ids, from the id `start` on.

    Each new entry removes old ones; this finds the old ones of logs that get no new entries.
    """
    limits = step.limits
    oldest_ms = step.now_ms - round(limits.audit_entry_keep_s * 1000)
    for number, org in enumerate(_log_owners(snapshot, step.start)):
        if number >= limits.searched_devices_max:
            return Part([], org, org, NEVER_MS)
        first = next(snapshot.keys(*index_range(AUDIT_ENTRY, org, "creationDate")), None)
        if first is None:
            continue
        entry = records.find(snapshot, AUDIT_ENTRY, org, bytes(first[-keys.ID_BYTES :]))
        if entry is not None and entry.doc["creationDate"] < oldest_ms:
            message = ExpireEntries(most=limits.removed_entries_max // _KEYS_PER_ENTRY)
            return Part([(Ref("auditLog", ROOT, org), message)], org, org + b"\x00", NEVER_MS)
    return Part([], None, None, NEVER_MS)


def _log_owners(snapshot: Snapshot, start: bytes) -> Iterator[bytes]:
    """The ids of organizations and users from the id `start` on, in their order."""
    prefixes = [keys.record_prefix(kind.name, ROOT) for kind in (ORGANIZATION, USER)]
    ranges = (snapshot.keys(keys.RECORDS, each + start, keys.prefix_end(each)) for each in prefixes)
    return merge(*((bytes(key[-keys.ID_BYTES :]) for key in found) for found in ranges))


_OF_APPLICATION: Final[tuple[Searching, ...]] = (
    search_devices,
    search_events,
    search_flows,
    search_counts,
    search_answers,
)
_OF_SERVER: Final[tuple[Searching, ...]] = (search_audit_logs,)
