"""Who is charged for what an application does: the user who owns it, or who founded the organization that owns it.

Owns the way from an application to who pays, which follows transfers at once. Does not own what is shared
(`core/runtime/owner_shares.py`).

An organization is charged to its founder, for good: anybody may found a hundred of them, or leave those that were
founded and found more, and each would have a share of its own. One whose founder is not known, because it is older than
this rule, is charged by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION, ORGANIZATION_NAME
from trunkline.actors.core.records.made import Made
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.work import Work, current_work
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import CopyOutdated

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

SERVER: Final = ROOT
"""Who is charged for what the server does by itself, and for calls that say nothing of who calls."""


class Owners:
    """The owners of all applications. A component. Only for the thread of the event loop."""

    def __init__(self, system: Host) -> None:
        self._made = Made(system, APPLICATION.name, _owner_of)
        self._founders = Made(system, ORGANIZATION_NAME, _founder_of)

    def of_work(self) -> bytes:
        """Who is charged for what the task works on."""
        return self.charged(current_work.get())

    def charged(self, work: Work | None) -> bytes:
        """Who is charged for some work: the owner of its application, or else the user who calls."""
        if work is None:
            return SERVER
        if work.application is not None:
            return self.of(work.application)
        return SERVER if work.payer is None else self.payer(work.payer)

    def of(self, application: bytes) -> bytes:
        """Who pays for an application. Of one that is gone, or not built yet, the id of the application itself."""
        owner = _as_known(self._made, application)
        return application if owner is None else self.payer(owner)

    def payer(self, owner: bytes) -> bytes:
        """Who pays for a user or an organization: the user, or the founder."""
        return _as_known(self._founders, owner) or owner


def _as_known(made: Made[bytes], id: bytes) -> bytes | None:
    """What was made of a record. Where it cannot be read just now, that of before: it only says who is charged."""
    try:
        return made.get(ROOT, id)
    except CopyOutdated:
        return made.before(id)


def payer_in(snapshot: Snapshot, id: bytes) -> bytes:
    """Who pays for an application, a user or an organization, as a snapshot shows it. For worker threads."""
    owner = _shown(snapshot, APPLICATION.name, id, _owner_of)
    return _shown(snapshot, ORGANIZATION_NAME, owner, _founder_of)


def _shown(snapshot: Snapshot, kind: str, id: bytes, of: Callable[[bytes, Doc], bytes]) -> bytes:
    raw = snapshot.get(keys.RECORDS, keys.record_key(kind, ROOT, id))
    return id if raw is None else of(id, decode(raw))


def _owner_of(id: bytes, doc: Doc) -> bytes:
    owner = bytes.fromhex(doc["ownerId"])
    return id if owner == ROOT else owner


def _founder_of(id: bytes, doc: Doc) -> bytes:
    return bytes.fromhex(doc["founderId"]) if "founderId" in doc else id
