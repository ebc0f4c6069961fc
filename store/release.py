"""What an owner says in the log when it gives a partition up."""

from __future__ import annotations

from typing import NamedTuple

from trunkline.store import codec
from trunkline.store.errors import LogBroken
from trunkline.store.log import Entry


class Release(NamedTuple):
    """What is in the body of a release: the node that shall own the partition, and for how long leases may be held that
    the owner has granted. Of one partition it is empty if no node is named."""

    heir: str = ""
    leases_s: float = 0.0

    def encoded(self) -> bytes:
        """The body."""
        return codec.encode(list(self)) if any(self) else b""

    @classmethod
    def of(cls, entry: Entry) -> Release:
        """The release in an entry. Raises LogBroken."""
        try:
            return cls(*codec.decode(entry.body)) if entry.body else cls()
        except (ValueError, TypeError) as error:
            raise LogBroken("A release of the log cannot be read by this version.") from error
