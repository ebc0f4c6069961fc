"""Retention of audit logs: which have entries that are too old. The log removes them (`people/audit/actor.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.expiry import NEVER_MS, Part, Step
from trunkline.actors.core.records.kinds import USER
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.people.audit.messages import AUDIT_ENTRY, ExpireEntries
from trunkline.actors.people.organizations.membership import ORGANIZATION
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_KEYS_PER_ENTRY: Final = 10
"""Keys of an entry of an audit log: its record and its index entries."""


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
