"""The experience actor: the only writer of the experience of one application.

It is separate from the application actor, so that checks of routes and changes of many members do not hold up the keys
and tokens of the application. It keeps no state in memory.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.records.messages import DeleteRecord, PatchRecord
from trunkline.actors.core.records.owner import RecordParent, by_fields
from trunkline.actors.core.records.resource import Change
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.presentation.experience.amend import AmendRecord, patch_of
from trunkline.actors.presentation.experience.bootstrap import Bootstrap, Bootstrapped, bootstrap
from trunkline.actors.presentation.experience.content import find_version
from trunkline.actors.presentation.experience.copies import ImportVersion, import_version
from trunkline.actors.presentation.experience.counts import AddCounts, add_counts
from trunkline.actors.presentation.experience.kind import DEVELOP
from trunkline.actors.presentation.experience.log_in import NoteLogIn, note_log_in
from trunkline.actors.presentation.experience.removal import RemoveSome, remove_some
from trunkline.actors.presentation.experience.sites import SERVED, Sites
from trunkline.actors.presentation.experience.versions import VERSIONS
from trunkline.store import keys


class Experience(RecordParent):
    """The experience of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "experience"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its application

    def flush(self) -> None:
        written = () if self.batch is None else self.batch.writes.get(keys.RECORDS, ())
        if any(key.startswith(SERVED) for key in written):
            self.after_commit(partial(self.system.component(Sites).changed, self.ref.id))

    def on_add_counts(self, message: AddCounts) -> None:
        """Add requests to the counts."""
        add_counts(self, message)

    def on_patch_record(self, message: PatchRecord) -> None:
        """Change a record. A version may be given by its name."""
        if message.resource != VERSIONS.name:
            super().on_patch_record(message)
            return
        version = find_version(Staged(self), self.ref.id, message.record).id
        if version == self.ref.id:
            self._patch_develop(message)
        else:
            super().on_patch_record(msgspec.structs.replace(message, record=version))

    def on_amend_record(self, message: AmendRecord) -> None:
        """Change single tags or members of a record."""
        self.on_patch_record(patch_of(self, message))

    def on_delete_record(self, message: DeleteRecord) -> None:
        """Delete a record. A version may be given by its name."""
        if message.resource == VERSIONS.name:
            version = find_version(Staged(self), self.ref.id, message.record).id
            if version == self.ref.id:
                raise Invalid("The version develop cannot be deleted; it is the one that is edited.")
            message = msgspec.structs.replace(message, record=version)
        super().on_delete_record(message)

    def on_import_version(self, message: ImportVersion) -> None:
        """Create a version with endpoints and views of its own."""
        import_version(self, message)

    def on_bootstrap(self, message: Bootstrap) -> Bootstrapped:
        """Create a first experience."""
        return bootstrap(self, message)

    def on_note_log_in(self, message: NoteLogIn) -> int:
        """Store a login of a user; the answer is the time of a token that is valid afterwards."""
        return note_log_in(self, message)

    def on_remove_some(self, message: RemoveSome) -> bool:
        """Remove a part of the experience; the answer is whether there may be more."""
        return remove_some(self, message.query)

    def _patch_develop(self, message: PatchRecord) -> None:
        """Change the settings of the version `develop`, which are stored with their first change."""
        stored = records.find(Staged(self), DEVELOP, self.ref.id, self.ref.id)
        shown = find_version(Staged(self), self.ref.id, self.ref.id)
        check_match(message.if_match, shown.raw)
        named = VERSIONS.stored(message.body)
        now_ms = records.next_update_ms(self.system.clock.wall_ms(), shown.doc)
        new = VERSIONS.changed(shown.doc, named) | {
            "lastUpdated": now_ms,
            **by_fields("lastUpdated", message.by),
        }
        change = Change(
            self, self.ref.id, now_ms, shown.doc, new, named, message.by, is_import=message.is_import
        )
        assert VERSIONS.check is not None
        VERSIONS.check(change)
        records.write(
            self, DEVELOP, self.ref.id, self.ref.id, None if stored is None else stored.doc, change.new
        )
