"""The slots of files that are under way: how many there are, and who may have them.

A slot is held for as long as a client takes or sends, so nobody waits for one: it is there, or the answer is 503. They
are shared by the owner of the application to whom the file belongs, and by the address that asks. A reader needs no
token, so one address has at most a quarter of the slots, and what it takes of one owner leaves the slots of all others.
"""

from __future__ import annotations

from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.system import System


class Slot:
    """A slot that is held. Give it back with `free`, which is idempotent."""

    __slots__ = ("_address", "_owner", "_slots")

    def __init__(self, slots: Slots, owner: bytes, address: str | None) -> None:
        self._slots: Slots | None = slots
        self._owner = owner
        self._address = address

    def free(self) -> None:
        """Give the slot back."""
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.by_owner.leave(self._owner)
            if self._address is not None:
                slots.by_address.leave(self._address)


class Slots:
    """The slots of one kind. `what` names in the plural what they are for."""

    def __init__(self, system: System, what: str, places: int) -> None:
        self.by_owner = OwnerShares(what, places, leaves=1)
        self.by_address = OwnerShares(what, places, leaves=3, whose="of this address")
        self._owners = system.component(Owners)

    @property
    def taken(self) -> int:
        """The number of slots that are held."""
        return self.by_owner.running

    def take(self, application: bytes, address: str | None = None) -> Slot:
        """Take a slot for a file of an application. Raises `Overloaded` if its owner or the address has its share.

        Without `address` the caller is known to belong to the application.
        """
        owner = self._owners.of(application)
        self.by_owner.take_at_once(owner)
        if address is not None:
            try:
                self.by_address.take_at_once(address)
            except BaseException:
                self.by_owner.leave(owner)
                raise
        return Slot(self, owner, address)
