"""The notebook actor: its mailbox has the throttle of the exports of one notebook.

Its record belongs to the application, which may change it between two calls, so the actor keeps nothing.
"""

from __future__ import annotations

from typing import ClassVar

from trunkline.actors.notebooks.messages import BeginInputExport
from trunkline.actors.notebooks.resource import NOTEBOOK
from trunkline.actors.runtime.actor import Actor
from trunkline.store import keys


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
