"""The notebooks of an application, and the throttle of each.

`Notebooks` is the only writer of the records, and of the names of their contents. `Notebook` keeps nothing: its mailbox
has the throttle of the exports of one notebook.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.core.contents.contents import Contents
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import CreateRecord
from trunkline.actors.core.records.owner import RecordParent, by_fields
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.structs import Created
from trunkline.actors.presentation.notebooks.messages import BeginInputExport, ImportNotebook, SetNotebookFile
from trunkline.actors.presentation.notebooks.resource import NOTEBOOK, discard_file
from trunkline.store import keys
from trunkline.store.object_store import Stored


class Notebooks(RecordParent):
    """All notebooks of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "notebooks"
    noun: ClassVar[str] = "application"

    __slots__ = ()

    def load(self) -> bool:
        return True  # it exists as long as its application

    def on_set_notebook_file(self, message: SetNotebookFile) -> None:
        """Give a notebook a file, which was written already, in place of the one that it has."""
        raw, old = self._record(NOTEBOOK, message.record)
        check_match(message.if_match, raw)
        discard_file(self, message.record, old)
        new = {
            **old,
            **self._kept(message.name, message.content, message.stored),
            "lastUpdated": records.next_update_ms(self.system.clock.wall_ms(), old),
            **by_fields("lastUpdated", message.by),
        }
        records.write(self, NOTEBOOK, self.ref.id, message.record, old, new)

    def on_import_notebook(self, message: ImportNotebook) -> Created:
        """Create a notebook of a bundle."""
        more: Doc = {}
        if message.content is not None and message.stored is not None:
            more = self._kept(message.name, message.content, message.stored)
        create = CreateRecord(
            resource=NOTEBOOK.name, body=message.body, by=message.by, import_id=message.id, more=more
        )
        return self.on_create_record(create)

    def _kept(self, name: str, content: bytes, stored: Stored) -> Doc:
        """Keep a content, and return the fields that name it."""
        self.system.component(Contents).keep(self, content, stored.size_bytes)
        return {
            "jupyterFileName": name,
            "content": content,
            "fileSize": stored.size_bytes,
            "sha256": stored.sha256,
        }


class Notebook(Actor):
    """One notebook of an application. `ref.parent` is the application."""

    kind: ClassVar[str] = "notebook"
    noun: ClassVar[str] = "notebook"

    __slots__ = ()

    def load(self) -> bool:
        key = keys.record_key(NOTEBOOK.name, self.ref.parent, self.ref.id)
        return self.system.journal.get(keys.RECORDS, key) is not None

    def on_begin_input_export(self, message: BeginInputExport) -> None:
        """Nothing: the call is counted when it is admitted."""
