"""Who is charged for what an application does: the user or the organization that owns it.

Owns the way from an application to its owner, which follows transfers at once. Does not own what is shared
(`runtime/owner_shares.py`).
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.records.kind import Doc
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.records.made import Made
from trunkline.actors.runtime.host import Host
from trunkline.actors.runtime.work import current_work
from trunkline.actors.values.ids import ROOT

SERVER: Final = ROOT
"""Who is charged for what the server does by itself, and for calls that say nothing of who calls."""


class Owners:
    """The owners of all applications. A component. Only for the thread of the event loop."""

    def __init__(self, system: Host) -> None:
        self._made = Made(system.journal, APPLICATION.name, _owner_of)

    def of_work(self) -> bytes:
        """Who is charged for what the task works on: the owner of its application, or else the user who calls."""
        work = current_work.get()
        if work is None:
            return SERVER
        if work.application is not None:
            return self.of(work.application)
        return work.payer or SERVER

    def of(self, application: bytes) -> bytes:
        """The id of the owner. Of an application that is gone, or not built yet, the id of the application itself."""
        return self._made.get(ROOT, application) or application


def _owner_of(id: bytes, doc: Doc) -> bytes:
    owner = bytes.fromhex(doc["ownerId"])
    return id if owner == ROOT else owner
