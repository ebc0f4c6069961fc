"""Downloads: of contents by a signed link, whole or in ranges, and of the results of jobs.

Owns how many downloads of contents there are at a time, and reading in pieces. Does not own links (`signatures.py`,
`platform/jobs/results.py`), nor how a range is asked for (`http/resources/data/contents.py`).
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
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

    async def open(
        self, link: Link, address: str | None = None, *, first: int = 0, length: int | None = None
    ) -> Download:
        """Open the content of a link, and read its first piece; for a client with this network address if there is one.

        With `first` and `length` only this range of it is read.

        Raises Gone if it was removed, Overloaded at the limit of downloads or if the object store cannot be reached,
        Crashed if the content is damaged.
        """
        slot = self._slots.take(link.application, address)
        try:
            name = name_of(link.application, link.content)
            store, size = self._system.store.contents, link.stored.size_bytes if length is None else length

            def begin() -> tuple[Content, bytes]:
                content = store.open(name, link.stored)
                if content is None:
                    raise Gone(CHANGED)
                try:
                    if first:
                        content.seek(first)
                    return content, content.read(min(PIECE_BYTES, size)) if size else b""
                except BaseException:
                    content.close()
                    raise

            content, piece = await self.contents.in_thread(begin, link.application)
        except BaseException:
            slot.free()
            raise
        contents, application = self.contents, link.application
        return Download(content, slot, lambda read: contents.in_thread(read, application), size, piece)


class Download:
    """A download: `next` returns a piece, or None at the end; `close` releases the content.

    A whole one is compared with its hash before its last piece is returned: a client that got the announced number of
    bytes has the correct file.
    """

    def __init__(
        self,
        content: Content,
        slot: Slot,
        in_thread: Callable[[Callable[[], bytes]], Awaitable[bytes]],
        size_bytes: int,
        piece: bytes = b"",
    ) -> None:
        """`size_bytes` are read in all, of which `piece` was read already."""
        self._slot = slot
        self._in_thread = in_thread
        self._content: Content | None = content
        self._left_bytes = size_bytes
        self._piece = piece

    async def next(self) -> bytes | None:
        """Read the next piece in a worker thread."""
        content, size = self._content, min(PIECE_BYTES, self._left_bytes)
        if content is None or not size:
            return None
        piece, self._piece = self._piece, b""
        if not piece:
            piece = await self._in_thread(lambda: content.read(size))
        self._left_bytes -= len(piece)
        return piece

    def close(self) -> None:
        """Release the content. Idempotent."""
        if self._content is not None:
            self._content.close()
            self._content = None
            self._slot.free()


def repr_digest(sha256: str) -> bytes:
    """The hash of a file in the format of a `Repr-Digest` field (RFC 9530)."""
    return b"sha-256=:%s:" % base64.b64encode(bytes.fromhex(sha256))
