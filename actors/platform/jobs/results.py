"""The results of jobs: files that can be downloaded with a signed link until they expire.

Owns results (`output.file` of a job's record, and a blob named after the job), their limits, links and expiry.
Does not own writing bytes to the disk (`store/blobs.py`) nor sending them (`http/`).

A link contains the job and the time of expiry (in the query, which the access log omits). It is signed with a
separate key that is derived from the secret of the data directory: no token opens a result, no link is a token,
and a new secret invalidates all links. Whoever has the link can download the file, since the link is sent by mail;
so it is shown only to callers who may queue such a job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.contents.downloads import PIECE_BYTES, Download
from trunkline.actors.core.contents.slots import Slots
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.owners import payer_in
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.machines import Machines
from trunkline.actors.core.runtime.threads import RESULTS, in_thread
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import (
    Crashed,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    StorageFull,
)
from trunkline.actors.core.values.signed_claims import NotSigned, SignedClaims, key_for
from trunkline.actors.core.values.timestamps import iso, parse_iso
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import ENDED
from trunkline.store.errors import NoDescriptors, StoreError, StoreUnreachable
from trunkline.store.keys import ID_BYTES
from trunkline.store.object_store import Draft, ObjectStore, Stored

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

Write = Callable[[bytes], None]
Fill = Callable[["Snapshot", Write], None]
"""Writes a whole result from one snapshot, in a worker thread."""

PATH: Final = "/downloads"
PAUSE_PIECES: Final = 64
PAUSE_S: Final = 0.00005
"""A thread that computes blocks the event loop until the interpreter switches threads. So the thread pauses every
64 pieces. Measured on a busy machine: 99 of 100 waits of the loop under 20 ms instead of 45, for a third more time."""
_PURPOSE: Final = "download"
_GONE: Final = "The link has expired, or what it led to is gone; run the job again."

_log = structlog.get_logger("trunkline.jobs")


class Results:
    """The results of this server. `base_url` is the server's URL for clients, without a slash at the end."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._signed: SignedClaims | None = None
        self.base_url = ""
        self._slots = Slots(system, "downloads", system.limits.downloads_max)
        self.received: set[str] = set()
        """The names of files that are stored before their job is queued, until it is."""

    # Writing.

    async def write(
        self, application: bytes, id: bytes, file_name: str, content_type: str, fill: Fill
    ) -> Doc:
        """Write a result atomically, and return its description for the record.

        Raises PayloadTooLarge for a result above its limit, StorageFull if the disk is full, the limit on all results
        is reached, or the owner has half of it.
        """
        limits = self._system.limits
        blobs = self._system.store.results

        def write(snapshot: Snapshot) -> Stored:
            room = self._room_bytes(snapshot, application)
            with blobs.write(name_of(application, id)) as draft:
                fill(snapshot, _bounded(draft, limits.job_result_bytes_max, room))
                return draft.finish()

        await self._system.component(Machines).caught_up()
        stored = await self._system.read(write, wide=True)
        expires_ms = self._system.clock.wall_ms() + limits.job_result_keep_s * 1000
        return {
            "name": file_name,
            "contentType": content_type,
            "size": stored.size_bytes,
            "sha256": stored.sha256,
            "expires": iso(expires_ms),
        }

    def _room_bytes(self, snapshot: Snapshot, owner: bytes) -> int:
        """How many bytes more the results of an owner may have. Blocks."""
        most, payer = self._system.limits.job_results_bytes_max, payer_in(snapshot, owner)
        payers: dict[str, bytes] = {}
        used = own = 0
        for name, size in self._system.store.results.sizes():
            used += size
            job_owner = name[: 2 * ID_BYTES]
            if job_owner not in payers:
                payers[job_owner] = _payer_of_name(snapshot, name)
            own += size if payers[job_owner] == payer else 0
        return min(most - used, most // 2 - own)

    # The link.

    def link(self, application: bytes, id: bytes, file: Doc) -> str:
        """The URL from which a result can be downloaded until it expires."""
        claims = {"sub": name_of(application, id), "exp": parse_iso(file["expires"]) // 1000}
        token = self._links().sign(claims)
        return f"{self.base_url}{PATH}?token={token}"

    def add_link(self, application: bytes, id: bytes, shown: Doc) -> None:
        """Add the link to a shown job, if it has a result."""
        file = shown.get("output", {}).get("file")
        if file is not None:
            linked = {**file, "url": self.link(application, id, file)}
            shown["output"] = {**shown["output"], "file": linked}

    def read(self, owner: bytes, id: bytes, bytes_max: int) -> bytes | None:
        """The bytes of a small result, None if it is gone. Blocks: not for the event loop.

        Raises StoreError if it cannot be read or its hash is wrong.
        """
        with self._system.store.snapshot() as snapshot:
            file = file_of(snapshot, owner, id)
        if file is None or file["size"] > bytes_max:
            return None
        content = self._system.store.results.open(name_of(owner, id), _stored(file))
        if content is None:
            return None
        with content:
            return content.read()

    @property
    def downloads(self) -> int:
        """The number of open downloads."""
        return self._slots.taken

    async def open(self, token: str, address: str) -> tuple[Doc, Download]:
        """Open the result for the token of a link, for a client with this network address; its description comes first.

        Raises Forbidden for a link that this server did not sign, NotFound for one that has expired or whose result
        was removed, Overloaded at the limit of open downloads or if the results cannot be reached.
        """
        system = self._system
        try:
            claims = self._links().read(token, "sub", "exp")
            name = bytes.fromhex(claims["sub"])
        except (NotSigned, ValueError):
            raise Forbidden(
                "This is not a link of this server, or it is incomplete; copy the whole link."
            ) from None
        if system.clock.wall_ms() >= claims["exp"] * 1000:
            raise NotFound(_GONE)
        with system.store.snapshot() as snapshot:
            file = file_of(snapshot, name[:ID_BYTES], name[ID_BYTES:])
        if file is None:
            raise NotFound(_GONE)
        slot = self._slots.take(name[:ID_BYTES], address)
        try:
            content = await in_thread(RESULTS, system.store.results.open, name.hex(), _stored(file))
            if content is None:
                raise NotFound(_GONE)
        except (NoDescriptors, StoreUnreachable) as failure:
            slot.free()
            raise as_domain_error(failure) from failure
        except StoreError as failure:
            slot.free()
            _log.error("result cannot be read", name=name.hex(), exc_info=failure)
            raise Crashed("The file cannot be read; the fault is logged.") from failure
        except BaseException:
            slot.free()
            raise
        return file, Download(content, slot, lambda read: in_thread(RESULTS, read), content.size_bytes)

    def _links(self) -> SignedClaims:
        if self._signed is None:
            key = key_for(self._system.store.directory.secret(), b"trunkline downloads")
            self._signed = SignedClaims(key, _PURPOSE)
        return self._signed

    # Expiry.

    async def sweep(self) -> int:
        """Remove results that have expired or whose job was deleted; return how many."""
        now_ms = self._system.clock.wall_ms()
        blobs = self._system.store.results
        # In this order: a file of these names whose job the snapshot does not have yet is still in `received`.
        names = [name for name in await trio.to_thread.run_sync(blobs.names) if self._is_own(name)]
        received = frozenset(self.received)

        def expired(snapshot: Snapshot) -> list[str]:
            return [name for name in names if name not in received and not is_kept(snapshot, name, now_ms)]

        doomed = await self._system.read(expired)
        for name in doomed:
            await trio.to_thread.run_sync(blobs.remove, name)
        return len(doomed)

    def _is_own(self, name: str) -> bool:
        """Whether a blob is of this partition. Another one removes its own: only that knows what it has received."""
        store = self._system.store
        if store.own_results is not None or store.partitions is None:
            return True
        places = self._system.component(Places)
        try:
            return places.of_application(bytes.fromhex(name)[:ID_BYTES]) == places.own
        except ValueError:
            return False


def name_of(application: bytes, id: bytes) -> str:
    """The name of a job's blob."""
    return (application + id).hex()


def file_of(snapshot: Snapshot, application: bytes, id: bytes) -> Doc | None:
    """The description of a result in the job's record; None if there is no such job or no result."""
    found = records.find(snapshot, JOB, application, id)
    if found is None:
        return None
    file: Doc | None = (found.doc.get("output") or {}).get("file")
    return file


def _payer_of_name(snapshot: Snapshot, name: str) -> bytes:
    """Who pays for a blob; nobody for one that has no job yet."""
    try:
        ids = bytes.fromhex(name)
    except ValueError:
        return b""
    return payer_in(snapshot, ids[:ID_BYTES]) if len(ids) == 2 * ID_BYTES else b""


def _stored(file: Doc) -> Stored:
    return Stored(file["size"], file["sha256"])


def is_kept(snapshot: Snapshot, name: str, now_ms: int) -> bool:
    """Whether a blob is still needed: its job has not ended, or the result has not expired."""
    try:
        ids = bytes.fromhex(name)
        found = records.find(snapshot, JOB, ids[:ID_BYTES], ids[ID_BYTES:])
    except ValueError:
        return True  # not written by this server; an operator may have put it there
    if found is None:
        return False
    if found.doc["status"] not in ENDED:
        return True
    file = (found.doc.get("output") or {}).get("file")
    return file is not None and parse_iso(file["expires"]) > now_ms


def result_problems(snapshot: Snapshot, blobs: ObjectStore) -> Iterator[str]:
    """Yield a sentence for each damaged result. A missing one is not reported: it may have expired."""
    for name in blobs.names():
        try:
            ids = bytes.fromhex(name)
            file = file_of(snapshot, ids[:ID_BYTES], ids[ID_BYTES:])
        except ValueError:
            continue
        try:
            content = None if file is None else blobs.open(name, _stored(file))
            if content is not None:
                with content:
                    while content.read(PIECE_BYTES):
                        pass
        except StoreError as failure:
            yield f"results {name}: {failure}"


class Pauses:
    """Pauses of a worker thread for the event loop: call it for each piece of work. Raises if it was cancelled.

    It pauses after so many pieces.
    """

    __slots__ = ("_every", "_pieces")

    def __init__(self, every: int = PAUSE_PIECES) -> None:
        self._every = every
        self._pieces = 0

    def __call__(self) -> None:
        self._pieces += 1
        if not self._pieces % self._every:
            time.sleep(PAUSE_S)
            trio.from_thread.check_cancelled()


def _bounded(draft: Draft, bytes_max: int, room: int) -> Write:
    """Return a function that writes to a draft within the limits, and pauses regularly for the event loop."""
    pause = Pauses()

    def write(piece: bytes) -> None:
        pause()
        size = draft.stored.size_bytes + len(piece)
        if size > bytes_max:
            raise PayloadTooLarge(
                f"The result would be larger than {bytes_max} bytes; ask for less at a time."
            )
        if size > room:
            raise StorageFull(
                "The results of earlier jobs leave no room for this one; it is tried again when some have expired."
            )
        draft.write(piece)

    return write
