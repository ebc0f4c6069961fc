"""Downloads of contents by a signed link, whole or in ranges.

Owns how many there are at a time, and reading in pieces. Does not own links (`signatures.py`), nor how a range is asked
for (`http/resources/data/contents.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.core.contents.contents import CHANGED, Contents
from trunkline.actors.core.contents.named import name_of
from trunkline.actors.core.contents.signatures import Link
from trunkline.actors.core.contents.slots import Slot, Slots
from trunkline.actors.core.values.errors import Gone

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.object_store import Content

PIECE_BYTES: Final = 256 * 1024
"""So much of a file is read at a time, here and wherever a thread reads or writes a file in pieces."""


class Downloads:
    """The downloads of this server."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.contents = system.component(Contents)
        self._slots = Slots(system, "downloads", system.limits.file_downloads_max)

    @property
    def running(self) -> int:
        """The number of downloads that are under way."""
        return self._slots.taken

    async def open(self, link: Link, address: str | None = None) -> Download:
        """Open the content of a link, for a client with this network address if there is one.

        Raises Gone if it was removed, Overloaded at the limit of downloads or if the object store cannot be reached,
        Crashed if the content is damaged.
        """
        slot = self._slots.take(link.application, address)
        try:
            name = name_of(link.application, link.content)
            store = self._system.store.contents
            content = await self.contents.in_thread(lambda: store.open(name, link.stored), link.application)
        except BaseException:
            slot.free()
            raise
        if content is None:
            slot.free()
            raise Gone(CHANGED)
        return Download(self, link.application, content, slot)


class Download:
    """A download: `next` returns a piece, or None at the end; `close` releases the content.

    A whole one is compared with its hash before its last piece is returned.
    """

    def __init__(self, downloads: Downloads, application: bytes, content: Content, slot: Slot) -> None:
        self._downloads = downloads
        self._application = application
        self._slot = slot
        self._content: Content | None = content
        self._left_bytes = content.size_bytes

    def narrow(self, first: int, length: int) -> None:
        """Return only a range."""
        assert self._content is not None
        self._content.seek(first)
        self._left_bytes = length

    async def next(self) -> bytes | None:
        """Read the next piece in a worker thread."""
        content, size = self._content, min(PIECE_BYTES, self._left_bytes)
        if content is None or not size:
            return None
        piece = await self._downloads.contents.in_thread(lambda: content.read(size), self._application)
        self._left_bytes -= len(piece)
        return piece

    def close(self) -> None:
        """Release the content. Idempotent."""
        if self._content is not None:
            self._content.close()
            self._content = None
            self._slot.free()
