"""The contents of files: reserved, written, kept, discarded and removed.

Owns which contents are needed, their markers, the bounds on their bytes, and reading them. Does not own the records
that name them, the object store (`store/object_store.py`), nor links and forms (`signatures.py`).

A content is the bytes of one file. It never changes: a changed file has a new content, so renaming and moving touch no
bytes. Its name is `<application>/<content>`, both ids in hex.

A content that no complete record names is named by a marker (`keys.content_key`), which is stored in the batch that is
the reason for it: with a time of expiry when an upload is reserved, with 0 when a record that named it is changed or
deleted. The sweep removes the bytes, then the marker. So kill -9 at any moment leaves nothing behind, and the object
store is never searched for what nobody needs.

A reservation is kept before it expires, or while its upload still runs. The sweep only removes other contents, so it
never removes one that is being kept.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog
import trio

from trunkline.actors.core.contents.named import PIECE_BYTES, counted_bytes, name_of
from trunkline.actors.core.contents.room import Room
from trunkline.actors.core.contents.signatures import Link, Policy, Signatures
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import Gone, PayloadTooLarge, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode, encode
from trunkline.store.errors import StoreBroken, StoreError
from trunkline.store.object_store import Content, Draft, Stored

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

T = TypeVar("T")

CHANGED: Final = "The file was changed or deleted after this link was made; read it again for a new one."

SLICE_CONTENTS: Final = 100
"""Contents that one slice of the sweep removes."""

_log = structlog.get_logger("trunkline.contents")


class Contents:
    """The contents of this server."""

    def __init__(self, system: System, signatures: Signatures) -> None:
        self._system = system
        self._store = system.store.contents
        self._threads = OwnerShares("pieces of files", system.limits.file_threads_max, sys.maxsize, leaves=1)
        self._in_use: Counter[bytes] = Counter()
        """Contents that are being uploaded, by the key of their marker."""
        self._removing: frozenset[bytes] = frozenset()
        """Contents that the sweep is removing, by the key of their marker."""
        self.signatures = signatures
        self.writing: Counter[bytes] = Counter()
        """The bytes of contents that are being written, by owner."""

    # For the owners of records, in a turn.

    def reserve(self, actor: Actor, content: bytes, expires_ms: int) -> None:
        """Reserve a new content until a time. Its bytes may be written when this turn is on disk."""
        actor.put(keys.META, keys.content_key(_application(actor), content), encode(expires_ms))

    def keep(self, actor: Actor, content: bytes, size_bytes: int) -> None:
        """A record names this reserved content, which was written, from this turn on.

        Raises Gone if the reservation has expired, StorageFull above the limit of the application.
        """
        application = _application(actor)
        key = keys.content_key(application, content)
        raw = actor.system.journal.get(keys.META, key)
        expires_ms = 0 if raw is None else decode(raw)
        is_valid = expires_ms > actor.system.clock.wall_ms() or (expires_ms and self._in_use[key])
        if not is_valid or key in self._removing:
            raise Gone("The upload came too late; change the file for a new form.")
        self.check_room(application, size_bytes)
        actor.delete(keys.META, key)
        actor.add(keys.COUNTS, keys.content_count_key(application), {"bytes": size_bytes})

    def discard(self, actor: Actor, content: bytes, size_bytes: int = 0) -> None:
        """No record names this content from this turn on; `size_bytes` is 0 if it was only reserved."""
        application = _application(actor)
        actor.put(keys.META, keys.content_key(application, content), encode(0))
        if size_bytes:
            actor.add(keys.COUNTS, keys.content_count_key(application), {"bytes": -size_bytes})

    def check_named(self, application: bytes, content: bytes) -> None:
        """Raise Gone if no record names this content any more, also where the sweep has not removed its bytes yet."""
        marker = self._system.journal.get(keys.META, keys.content_key(application, content))
        owner = records.raw_of(self._system.journal.get, APPLICATION, ROOT, application)
        if owner is None or (marker is not None and not decode(marker)):
            raise Gone(CHANGED)

    def check_room(self, application: bytes, size_bytes: int) -> None:
        """Raise StorageFull if an application may not have so many bytes more."""
        bytes_max = self._system.limits.application_files_bytes_max
        used = bytes_max - self.free_bytes(application)
        if used + size_bytes > bytes_max:
            raise StorageFull(
                f"The files of the application have {used} bytes; with {size_bytes} more they would have more than "
                f"{bytes_max}. Delete files first."
            )

    def free_bytes(self, application: bytes) -> int:
        """How many bytes more the files of an application may have."""
        key = keys.content_count_key(application)
        used = counted_bytes(self._system.journal.get(keys.COUNTS, key))
        return self._system.limits.application_files_bytes_max - used

    # For calls and jobs.

    async def reserve_now(self, application: bytes, content: bytes, expires_ms: int) -> None:
        """Reserve a content without an actor, for a job; on disk when this returns. Raises StoreError.

        Raises Overloaded while the application is being moved.
        """
        self._system.moves.check(application)
        batch = Batch()
        batch.put(keys.META, keys.content_key(application, content), encode(expires_ms))
        await self._system.journal.submit(batch).wait()

    async def write(
        self, application: bytes, content: bytes, pieces: AsyncIterable[bytes], bytes_max: int
    ) -> Stored:
        """Write a reserved content; complete and durable when this returns. One of the same name is replaced.

        Raises PayloadTooLarge above `bytes_max`, StorageFull if there is no room for it, Overloaded if the object
        store cannot be reached. Nothing is kept unless it returns.
        """
        async with self.draft(application, content, bytes_max) as draft:
            async for piece in pieces:
                await draft.write(piece)
            return await draft.finish()

    def draft(self, application: bytes, content: bytes, bytes_max: int) -> ContentDraft:
        """Begin to write a reserved content piece by piece. Without `finish` nothing is kept."""
        draft = self._store.write(name_of(application, content))
        return ContentDraft(self, draft, application, bytes_max)

    def write_blocking(
        self,
        application: bytes,
        content: bytes,
        fill: Callable[[Callable[[bytes], None]], None],
        bytes_max: int,
    ) -> Stored:
        """Write a reserved content in a worker thread, as `write`: `fill` is called with a function that adds a piece.

        The reservation must not expire meanwhile.
        """
        try:
            room = self.room(application)
            with self._store.write(name_of(application, content)) as draft:

                def add(piece: bytes) -> None:
                    size_bytes = draft.stored.size_bytes + len(piece)
                    _check_size(size_bytes, bytes_max)
                    room.check(size_bytes)
                    draft.write(piece)

                fill(add)
                return draft.finish()
        except StoreError as failure:
            raise as_domain_error(failure) from failure

    def open(self, application: bytes, content: bytes, stored: Stored) -> Content:
        """Open a content that a record names; a file object, whose whole reads are compared with the hash. Blocks.

        Raises StoreBroken if it is missing or has another size.
        """
        found = self._store.open(name_of(application, content), stored)
        if found is None:
            raise StoreBroken("A content is missing from the store of files.")
        return found

    def link(
        self,
        application: bytes,
        content: bytes,
        stored: Stored,
        *,
        file_name: str,
        content_type: str,
        expires_ms: int,
    ) -> str:
        """The URL from which a content can be downloaded until it expires."""
        return self.signatures.link(Link(application, content, stored, file_name, content_type, expires_ms))

    def upload_form(self, policy: Policy) -> dict[str, Any]:
        """The form that permits to upload a reserved content: `url` and `fields`."""
        return {"url": self.signatures.upload_url, "fields": self.signatures.form(policy)}

    # Bounds.

    @contextmanager
    def in_use(self, application: bytes, content: bytes) -> Iterator[None]:
        """Meanwhile a reservation of the content does not expire."""
        key = keys.content_key(application, content)
        self._in_use[key] += 1
        try:
            yield
        finally:
            self._in_use[key] -= 1
            if not self._in_use[key]:
                del self._in_use[key]

    def is_reserved(self, snapshot: Snapshot, application: bytes, content: bytes) -> bool:
        """Whether a content may be written: it is reserved, and no record has named it."""
        key = keys.content_key(application, content)
        raw = snapshot.get(keys.META, key)
        return raw is not None and decode(raw) != 0 and key not in self._removing

    def room(self, application: bytes) -> Room:
        """The room for one more content of an application on this server. Blocks."""
        with self._system.store.snapshot() as snapshot:
            return Room(snapshot, application, self._system.limits.files_bytes_max, self.writing)

    def payer(self, application: bytes) -> bytes:
        """Whose share a content of an application takes."""
        return self._system.component(Owners).of(application)

    async def in_thread(self, call: Callable[[], T], application: bytes | None = None) -> T:
        """Run a call of the object store in a worker thread. Raises DomainError for its failures.

        It is charged to the owner of the application, or else to whom the task works for.
        """
        try:
            payer = (
                self._system.payer()
                if application is None
                else self._system.component(Owners).of(application)
            )
            return await self._threads.in_thread(payer, call)
        except StoreError as failure:
            _log.error("contents cannot be read or written", reason=str(failure))
            raise as_domain_error(failure) from failure

    # Removal.

    async def sweep(self) -> bool:
        """Remove contents that nobody needs, a slice of them; True if there may be more. Raises StoreError."""
        expired = await self._system.read(self._expired)
        markers = [marker for marker in expired if not self._in_use[marker]]
        self._removing = frozenset(markers)
        try:
            if not markers or not await self._remove(lambda: self._remove_contents(markers)):
                return False
            batch = Batch()
            for marker in markers:
                batch.delete(keys.META, marker)
            await self._system.journal.submit(batch).wait()
        finally:
            self._removing = frozenset()
        return len(expired) == SLICE_CONTENTS

    async def remove_application(self, application: bytes) -> bool:
        """Remove all contents of a deleted application; False if that is not possible now."""
        try:
            return await self._remove(lambda: self._store.remove_folder(application.hex()))
        except StoreError as failure:
            _log.warning("contents of a deleted application are kept for now", reason=str(failure))
            return False

    async def _remove(self, remove: Callable[[], None]) -> bool:
        """Run a removal in a worker thread; False if another process copies the contents."""

        def run() -> bool:
            with self._store.removing() as allowed:
                if allowed:
                    remove()
            return allowed

        return await self._threads.in_thread(self._system.payer(), run)

    def _remove_contents(self, markers: list[bytes]) -> None:
        for marker in markers:
            ids = marker[len(keys.CONTENT_PREFIX) :]
            self._store.remove(name_of(ids[: keys.ID_BYTES], ids[keys.ID_BYTES :]))

    def _expired(self, snapshot: Snapshot) -> list[bytes]:
        """The markers of contents that may be removed, at most a slice of them."""
        now_ms = self._system.clock.wall_ms()
        found: list[bytes] = []
        prefix = keys.CONTENT_PREFIX
        for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix)):
            if decode(raw) <= now_ms:
                found.append(bytes(key))
                if len(found) == SLICE_CONTENTS:
                    break
        return found


class ContentDraft:
    """A content that is being written, piece by piece, in worker threads. An async context manager.

    Small pieces are gathered; at most one piece is in memory and one is being written.
    """

    def __init__(self, contents: Contents, draft: Draft, application: bytes, bytes_max: int) -> None:
        self._contents = contents
        self._application = application
        self._payer = contents.payer(application)
        self._draft = draft
        self._bytes_max = bytes_max
        self._room: Room | None = None
        self._gathered = bytearray()
        self.size_bytes = 0

    async def __aenter__(self) -> ContentDraft:
        def begin() -> Room:
            room = self._contents.room(self._application)
            self._draft.__enter__()
            return room

        self._room = await self._contents.in_thread(begin)
        return self

    async def write(self, piece: bytes) -> None:
        """Add a piece. Raises PayloadTooLarge or StorageFull."""
        self.size_bytes += len(piece)
        self._contents.writing[self._payer] += len(piece)
        _check_size(self.size_bytes, self._bytes_max)
        assert self._room is not None
        self._room.check()
        self._gathered += piece
        if len(self._gathered) >= PIECE_BYTES:
            await self._write_gathered()

    async def complete(self) -> Stored:
        """Write what is gathered; the size and the hash of all. No other piece may follow."""
        await self._write_gathered()
        return self._draft.stored

    async def finish(self) -> Stored:
        """Give the content its name. It is complete and durable when this returns. Raises StorageFull."""
        await self.complete()
        self._contents.check_room(self._application, self.size_bytes)
        return await self._contents.in_thread(self._draft.finish)

    async def _write_gathered(self) -> None:
        if self._gathered:
            gathered, self._gathered = bytes(self._gathered), bytearray()
            await self._contents.in_thread(lambda: self._draft.write(gathered))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        writing = self._contents.writing
        writing[self._payer] -= self.size_bytes
        if not writing[self._payer]:
            del writing[self._payer]
        with trio.CancelScope(shield=True):
            # Also of a call that is cancelled nothing may be left; it takes a moment.
            await self._contents.in_thread(lambda: self._draft.__exit__(kind, error, trace))


def _check_size(size_bytes: int, bytes_max: int) -> None:
    """Raise PayloadTooLarge for a content of this size."""
    if size_bytes > bytes_max:
        raise PayloadTooLarge(
            f"The file has more than {bytes_max} bytes, which is the most that is taken here."
        )


def _application(actor: Actor) -> bytes:
    """The application that an actor belongs to."""
    return actor.ref.id if actor.ref.parent == ROOT else actor.ref.parent
