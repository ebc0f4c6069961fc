"""The audit log: the only writer of the entries of one organization, or of the applications of one person.

Entries are added and never changed. With each new entry, a few of those that are too old or too many are removed, so
the log is bounded by its age and its length. A log without new entries is asked to remove those that are too old
(`actors/maintenance/retention.py`). Reads leave out what is too old and not yet removed.

Each partition has the entries of its own calls, within the same bounds; lists merge them.
"""

from __future__ import annotations

from itertools import islice
from typing import ClassVar, Final

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.listing import index_range
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.structs import Created
from trunkline.actors.people.audit.messages import AUDIT_ENTRY, AddEntry, ExpireEntries
from trunkline.store import keys
from trunkline.store.codec import decode

REMOVED_PER_ENTRY: Final = 4
"""More than are added, so that a log above its bounds shrinks; few, so that a turn stays short."""


class AuditLog(Actor):
    """The audit log of one organization or user. `ref.parent` is `ids.ROOT`, `ref.id` the organization or the user."""

    kind: ClassVar[str] = "auditLog"
    noun: ClassVar[str] = "organization or user"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its owner

    def on_add_entry(self, message: AddEntry) -> Created:
        """Add an entry; the answer is its id."""
        now_ms = self.system.clock.wall_ms()
        id = self.system.ids.new(now_ms)
        doc = {"creationDate": now_ms, **msgspec.to_builtins(message.entry)}
        self._remove_old(now_ms, REMOVED_PER_ENTRY, added=1)
        records.write(self, AUDIT_ENTRY, self.ref.id, id, None, doc)
        self.writes().completes = message.completes
        return Created(id)

    def on_expire_entries(self, message: ExpireEntries) -> list[int]:
        """Remove the oldest entries if they are too old; the answer is their number, in a list."""
        return [self._remove_old(self.system.clock.wall_ms(), message.most)]

    def _remove_old(self, now_ms: int, most: int, added: int = 0) -> int:
        """Stage the removal of the oldest entries, at most `most`, if they are too old or too many; return how many."""
        journal, org, limits = self.system.journal, self.ref.id, self.system.limits
        raw = journal.own(keys.COUNTS, keys.total_key(AUDIT_ENTRY.name, org))
        too_many = (0 if raw is None else int(decode(raw)["n"])) + added - limits.audit_entries_max
        oldest_ms = now_ms - round(limits.audit_entry_keep_s * 1000)
        with self.system.store.snapshot() as snapshot:
            oldest = [
                bytes(key)
                for key in islice(snapshot.keys(*index_range(AUDIT_ENTRY, org, "creationDate")), most)
            ]
        removed = 0
        for key in oldest:
            id = key[-keys.ID_BYTES :]
            found = records.raw_of(journal.get, AUDIT_ENTRY, org, id)
            if found is None:
                continue  # removed by a turn whose commit is to come
            old = decode(found)
            if removed >= too_many and old["creationDate"] >= oldest_ms:
                break
            records.erase(self, AUDIT_ENTRY, org, id, old)
            removed += 1
        return removed
