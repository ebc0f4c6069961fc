"""Uploads by a signed form: the bytes of one content, and then its record.

Owns the steps of an upload and how many there are at a time. Does not own forms (`signatures.py`), the store of the
bytes, nor what the owner of the record does with them.

An upload can be repeated. While the content is reserved, its bytes are stored, and the owner of the record is asked to
complete it. When the record is complete, the bytes of another upload are only hashed, and it succeeds if they are the
same. Of several uploads at a time, the first that has all bytes completes the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import trio

from trunkline.actors.core.contents.contents import ContentDraft, Contents
from trunkline.actors.core.contents.messages import CompleteUpload
from trunkline.actors.core.contents.signatures import Policy
from trunkline.actors.core.contents.slots import Slots
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Gone, Invalid, NotFound
from trunkline.actors.core.values.ids import ROOT
from trunkline.store.object_store import HashOnly, Stored

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot


class UploadOwner(NamedTuple):
    """Who completes the records of a kind: an actor of each application, which handles `CompleteUpload`."""

    kind: Kind
    actor: str


class Uploads:
    """The uploads of this server. `owners` are by the name of the kind."""

    def __init__(self, system: System, owners: Mapping[str, UploadOwner]) -> None:
        self.system = system
        self.contents = system.component(Contents)
        self.owners = owners
        self.locks: dict[bytes, trio.Lock] = {}
        """Locks of the contents whose uploads have all bytes."""
        self._slots = Slots(system, "uploads", system.limits.uploads_max)

    @property
    def running(self) -> int:
        """The number of uploads that are under way."""
        return self._slots.taken

    def begin(self, policy: Policy) -> Upload:
        """Begin the upload that a form permits. Use it as an async context manager.

        Raises NotFound if the application is gone, Gone if the file has another content by now, StorageFull if the
        application has no room for it, Overloaded at the limit of uploads.
        """
        complete = self.complete(policy)
        if complete is None:
            self.contents.check_room(policy.application, policy.size_bytes or 0)
        return Upload(self, policy, complete)

    def bytes_max(self, policy: Policy) -> int:
        """How many bytes the content of a form may have."""
        if policy.size_bytes is not None:
            return policy.size_bytes
        return min(self.system.limits.file_bytes_max, self.contents.free_bytes(policy.application))

    @contextmanager
    def slot(self, application: bytes) -> Iterator[None]:
        """Meanwhile an upload to an application is under way. Raises Overloaded if its owner has its share."""
        slot = self._slots.take(application)
        try:
            yield
        finally:
            slot.free()

    def complete(self, policy: Policy) -> Stored | None:
        """What is stored of a content already; None while it is reserved. Raises NotFound or Gone."""
        with self.system.store.snapshot() as snapshot:
            if not records.exists(snapshot, APPLICATION, ROOT, policy.application):
                raise NotFound("The application of this file does not exist any more.")
            if self.contents.is_reserved(snapshot, policy.application, policy.content):
                return None
            return self._stored(snapshot, policy)

    def _stored(self, snapshot: Snapshot, policy: Policy) -> Stored:
        kind = self.owners[policy.kind].kind
        found = records.find(snapshot, kind, policy.application, policy.record)
        if found is not None and kind.contents is not None:
            for content, stored in kind.contents(found.doc):
                if content == policy.content:
                    return stored
        raise Gone(
            "The file was changed or deleted after this form was made; change the file for a new form."
        )


class Upload:
    """One upload: `write` each piece, then `finish`. Without `finish` nothing of it is kept."""

    def __init__(self, uploads: Uploads, policy: Policy, complete: Stored | None) -> None:
        self._uploads = uploads
        self._policy = policy
        self._complete = complete
        contents, ids = uploads.contents, (policy.application, policy.content)
        self._reservation = contents.in_use(*ids)
        if complete is None:
            self._draft = contents.draft(*ids, uploads.bytes_max(policy))
        else:
            self._draft = ContentDraft(
                contents, HashOnly(), policy.application, policy.size_bytes or complete.size_bytes
            )
        self._held = AsyncExitStack()

    async def __aenter__(self) -> Upload:
        async with AsyncExitStack() as held:
            held.enter_context(self._uploads.slot(self._policy.application))
            held.enter_context(self._reservation)
            await held.enter_async_context(self._draft)
            self._held = held.pop_all()
        return self

    async def write(self, piece: bytes) -> None:
        """Add a piece. Raises PayloadTooLarge for more bytes than the form says, StorageFull if the disk is full."""
        await self._draft.write(piece)

    async def finish(self) -> Stored:
        """Complete the record; all is on disk when this returns. Returns what was stored.

        Raises Invalid if there are fewer bytes than the form says, or others than in an upload before.
        """
        policy, uploads = self._policy, self._uploads
        stored = await self._draft.complete()
        if policy.size_bytes not in (None, stored.size_bytes):
            raise Invalid(
                f"file: has {stored.size_bytes} bytes, but fileSize says {policy.size_bytes}; send the whole file."
            )
        lock = uploads.locks.setdefault(policy.content, trio.Lock())
        try:
            async with lock:
                if self._complete is None:
                    self._complete = uploads.complete(policy)
                if self._complete is None:
                    await self._draft.finish()
                    await self._ask(stored)
                elif self._complete.sha256 != stored.sha256:
                    raise Invalid(
                        "file: was uploaded already with other bytes; change the file for a new form."
                    )
        finally:
            if not lock.statistics().tasks_waiting:
                uploads.locks.pop(policy.content, None)
        return stored

    async def _ask(self, stored: Stored) -> None:
        """Let the owner of the record complete it."""
        policy = self._policy
        owner = self._uploads.owners[policy.kind]
        message = CompleteUpload(
            kind=policy.kind, record=policy.record, content=policy.content, stored=stored
        )
        await self._uploads.system.ask(Ref(owner.actor, policy.application, policy.application), message)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._held.__aexit__(kind, error, trace)
