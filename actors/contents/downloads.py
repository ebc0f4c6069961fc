"""Downloads of contents by a signed link, whole or in ranges.

Owns how many there are at a time, and reading in pieces. Does not own links (`signatures.py`), nor how a range is asked
for (`http/resources/contents.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.contents.contents import Contents
from trunkline.actors.contents.named import name_of
from trunkline.actors.contents.signatures import Link
from trunkline.actors.values.errors import Gone, Overloaded

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.object_store import Content

PIECE_BYTES: Final = 256 * 1024


class Downloads:
    """The downloads of this server."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.contents = system.component(Contents)
        self.running = 0
        """The number of downloads that are under way."""

    async def open(self, link: Link) -> Download:
        """Open the content of a link.

        Raises Gone if it was removed, Overloaded at the limit of downloads or if the object store cannot be reached,
        Crashed if the content is damaged.
        """
        if self.running >= self._system.limits.file_downloads_max:
            raise Overloaded(f"{self.running} downloads are under way, which is the bound of this server.")
        self.running += 1
        try:
            name = name_of(link.application, link.content)
            store = self._system.store.contents
            content = await self.contents.in_thread(lambda: store.open(name, link.stored))
        except BaseException:
            self.running -= 1
            raise
        if content is None:
            self.running -= 1
            raise Gone(
                "The file was changed or deleted after this link was made; read it again for a new one."
            )
        return Download(self, content)


class Download:
    """A download: `next` returns a piece, or None at the end; `close` releases the content.

    A whole one is compared with its hash before its last piece is returned.
    """

    def __init__(self, downloads: Downloads, content: Content) -> None:
        self._downloads = downloads
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
        piece = await self._downloads.contents.in_thread(lambda: content.read(size))
        self._left_bytes -= len(piece)
        return piece

    def close(self) -> None:
        """Release the content. Idempotent."""
        if self._content is not None:
            self._content.close()
            self._content = None
            self._downloads.running -= 1
