"""How much room the contents of files have on this server, and how much of it an owner may use.

All contents together have at most `files_bytes_max`. In the last tenth of it, the contents of an owner may have only as
many bytes as stay free: one who has much gets nothing of it, and one who has little always finds room, at most half of
what is free. So one owner may use nine tenths of a server, and cannot fill it for others.

Does not own the bound of an application (`contents.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.core.contents.named import applications, counted_bytes
from trunkline.actors.core.records.owners import payer_in
from trunkline.actors.core.values.errors import StorageFull
from trunkline.store import keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunkline.store.snapshot import Snapshot

KEPT_SHARE: Final = 10
"""A tenth is kept for owners who have less than what stays free."""


class Room:
    """The room for one more content, of some owner. `writing` are the bytes that are being written, by owner."""

    __slots__ = ("_free", "_kept", "_own", "_payer", "_writing")

    def __init__(
        self, snapshot: Snapshot, application: bytes, files_bytes_max: int, writing: Mapping[bytes, int]
    ) -> None:
        """Blocks: it reads what the applications have."""
        counted = [
            (each, counted_bytes(snapshot.get(keys.COUNTS, keys.content_count_key(each))))
            for each in applications(snapshot)
        ]
        self._payer = payer_in(snapshot, application)
        self._writing = writing
        self._free = files_bytes_max - sum(size for _, size in counted)
        self._kept = files_bytes_max // KEPT_SHARE
        self._own = 0
        if self._free < files_bytes_max // 2:  # else it is not asked for
            self._own = sum(
                size for each, size in counted if size and payer_in(snapshot, each) == self._payer
            )

    def check(self, more_bytes: int = 0) -> None:
        """Raise StorageFull if what is being written, and so many bytes more of this owner, have no room."""
        free = self._free - sum(self._writing.values()) - more_bytes
        if free < 0:
            raise StorageFull(
                "The files of this server have reached the limit that the operator has set; nothing was stored."
            )
        own = self._own + self._writing.get(self._payer, 0) + more_bytes
        if free < self._kept and own > free:
            raise StorageFull(
                f"The files of this owner would have {own} bytes, and {free} would stay free on this server. Its last "
                f"{self._kept} bytes (a tenth of files_bytes_max) are for owners who have less than stays free. "
                "Nothing was stored; delete files first."
            )
