"""The results of jobs: files that somebody fetches, by a link that is proof enough, for a time.

Owns what a result is (`output.file` of a job's record, and a blob of the job's name), its bounds, the link,
and its end. Does not own writing bytes to the disk (`store/blobs.py`) nor sending them (the edge).

A link carries the job and the moment of its end (in the query, which no access log shows), signed with a key
of its own, made from the secret of the data directory: no token opens a result, no link is a token, and a new
secret ends all links. Whoever has the link has the file, as it is with a link in a mail; so it is shown only to
who may queue such a job.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import jwt
import structlog
import trio

from trunkline.actors.jobs.kind import JOB
from trunkline.actors.jobs.messages import ENDED
from trunkline.actors.records import records
from trunkline.actors.records.kind import Doc
from trunkline.actors.values.errors import (
    Crashed,
    Forbidden,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    StorageFull,
)
from trunkline.actors.values.timestamps import iso, parse_iso
from trunkline.store.blobs import Blobs, Content, Draft, Stored
from trunkline.store.errors import StoreError
from trunkline.store.keys import ID_BYTES

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

Write = Callable[[bytes], None]
Fill = Callable[["Snapshot", Write], None]
"""Writes a whole result from one snapshot, in a worker thread."""

PATH: Final = "/downloads"
PIECE_BYTES: Final = 256 * 1024
REST_PIECES: Final = 64
REST_S: Final = 0.00005
"""A thread that computes keeps the event loop waiting until the interpreter makes it give way. One that rests
every 64 lines does so by itself. Measured on a busy machine: 99 of 100 waits of the loop under 20 ms instead of 45,
for a third more time."""
_ALGORITHM: Final = "HS256"
_PURPOSE: Final = "download"
_GONE: Final = "The link has expired, or what it led to is gone; run the job again."

_log = structlog.get_logger("trunkline.jobs")


class Results:
    """The results that this server keeps. `base_url` is where clients reach it, without a slash at the end."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._key: bytes | None = None
        self.base_url = ""
        self.downloads = 0
        """Downloads that are under way."""

    # Writing.

    async def write(
        self, application: bytes, id: bytes, file_name: str, content_type: str, fill: Fill
    ) -> Doc:
        """Write a result, whole or not at all, and return what the record keeps of it.

        Raises PayloadTooLarge for a result over its bound, StorageFull where the disk has no room or the bound
        on all results is reached.
        """
        limits = self._system.limits
        blobs = self._system.store.results

        def write(snapshot: Snapshot) -> Stored:
            room = limits.job_results_bytes_max - blobs.used_bytes()
            with blobs.write(name_of(application, id)) as draft:
                fill(snapshot, _bounded(draft, limits.job_result_bytes_max, room))
                return draft.finish()

        stored = await self._system.read(write)
        expires_ms = self._system.clock.wall_ms() + limits.job_result_keep_s * 1000
        return {
            "name": file_name,
            "contentType": content_type,
            "size": stored.size_bytes,
            "sha256": stored.sha256,
            "expires": iso(expires_ms),
        }

    # The link.

    def link(self, application: bytes, id: bytes, file: Doc) -> str:
        """The address under which a result can be fetched until it expires."""
        claims = {
            "aud": _PURPOSE,
            "sub": name_of(application, id),
            "exp": parse_iso(file["expires"]) // 1000,
        }
        token = jwt.encode(claims, self._signing_key(), algorithm=_ALGORITHM)
        return f"{self.base_url}{PATH}?token={token}"

    def add_link(self, application: bytes, id: bytes, shown: Doc) -> None:
        """Add the link to a job that is to be shown, where it has a result."""
        file = shown.get("output", {}).get("file")
        if file is not None:
            linked = {**file, "url": self.link(application, id, file)}
            shown["output"] = {**shown["output"], "file": linked}

    def open(self, token: str) -> Download:
        """The result that the token of a link leads to.

        Raises Forbidden for a link that is not of this server, NotFound for one that has expired or whose result
        is gone, Overloaded where as many downloads are under way as may be.
        """
        system = self._system
        try:
            claims = jwt.decode(
                token,
                self._signing_key(),
                algorithms=[_ALGORITHM],
                audience=_PURPOSE,
                options={"verify_exp": False, "require": ["sub", "exp"]},
            )
            name = bytes.fromhex(claims["sub"])
        except (jwt.InvalidTokenError, ValueError):
            raise Forbidden(
                "This is no link of this server, or it was cut off; copy the whole of it."
            ) from None
        if system.clock.wall_ms() >= claims["exp"] * 1000:
            raise NotFound(_GONE)
        if self.downloads >= system.limits.downloads_max:
            raise Overloaded(f"{self.downloads} downloads are under way, which is the bound of this server.")
        with system.store.snapshot() as snapshot:
            file = file_of(snapshot, name[:ID_BYTES], name[ID_BYTES:])
        try:
            content = None if file is None else system.store.results.open(name.hex())
        except StoreError as failure:
            _log.error("result can not be read", name=name.hex(), exc_info=failure)
            raise Crashed("The file can not be read; the fault is logged.") from failure
        if file is None or content is None:
            raise NotFound(_GONE)
        return Download(self, file, content)

    def _signing_key(self) -> bytes:
        if self._key is None:
            secret = self._system.store.directory.secret()
            self._key = hmac.digest(secret, b"trunkline downloads", hashlib.sha256)
        return self._key

    # The end.

    async def sweep(self) -> int:
        """Remove what has expired or belongs to no job any more; returns how many."""
        now_ms = self._system.clock.wall_ms()
        blobs = self._system.store.results

        def remove(snapshot: Snapshot) -> int:
            doomed = [name for name in blobs.names() if not is_kept(snapshot, name, now_ms)]
            for name in doomed:
                blobs.remove(name)
            return len(doomed)

        return await self._system.read(remove)


class Download:
    """A result on its way to a client: `next` gives a piece, None is the end, `close` gives the file back.

    The last piece is given only when the hash of all of them is that of what was written. So a client that got
    as many bytes as were announced has the file as it was made.
    """

    def __init__(self, results: Results, file: Doc, content: Content) -> None:
        self.file_name: str = file["name"]
        self.content_type: str = file["contentType"]
        self.size_bytes: int = file["size"]
        self.sha256: str = file["sha256"]
        self._results = results
        self._content: Content | None = content
        self._left = self.size_bytes
        results.downloads += 1

    @property
    def digest(self) -> str:
        """The hash as a `Repr-Digest` field has it (RFC 9530)."""
        return f"sha-256=:{base64.b64encode(bytes.fromhex(self.sha256)).decode()}:"

    async def next(self) -> bytes | None:
        """The next piece, read in a worker thread when the one before has been taken."""
        if self._content is None or not self._left:
            return None
        return await trio.to_thread.run_sync(self._piece, self._content)

    def _piece(self, content: Content) -> bytes:
        piece = content.read(min(PIECE_BYTES, self._left))
        self._left -= len(piece)
        if not self._left or not piece:
            content.check(Stored(self.size_bytes, self.sha256))
        return piece

    def close(self) -> None:
        """Give the file back. Idempotent."""
        if self._content is not None:
            self._content.close()
            self._content = None
            self._results.downloads -= 1


def name_of(application: bytes, id: bytes) -> str:
    """The name of a job's blob."""
    return (application + id).hex()


def file_of(snapshot: Snapshot, application: bytes, id: bytes) -> Doc | None:
    """What the record of a job says of its result; None where there is no such job or no result."""
    found = records.find(snapshot, JOB, application, id)
    if found is None:
        return None
    file: Doc | None = (found.doc.get("output") or {}).get("file")
    return file


def is_kept(snapshot: Snapshot, name: str, now_ms: int) -> bool:
    """Whether a blob still belongs to a job: to one that has not ended, or as a result that has not expired."""
    try:
        ids = bytes.fromhex(name)
        found = records.find(snapshot, JOB, ids[:ID_BYTES], ids[ID_BYTES:])
    except ValueError:
        return True  # not ours; an operator may have put it there
    if found is None:
        return False
    if found.doc["status"] not in ENDED:
        return True
    file = (found.doc.get("output") or {}).get("file")
    return file is not None and parse_iso(file["expires"]) > now_ms


def result_problems(snapshot: Snapshot, blobs: Blobs) -> Iterator[str]:
    """Sentences about results that are not what was written. One that is not there may have expired."""
    for name in blobs.names():
        try:
            ids = bytes.fromhex(name)
            file = file_of(snapshot, ids[:ID_BYTES], ids[ID_BYTES:])
        except ValueError:
            continue
        content = None if file is None else blobs.open(name)
        if file is None or content is None:
            continue
        try:
            while content.read(PIECE_BYTES):
                pass
            content.check(Stored(file["size"], file["sha256"]))
        except StoreError as failure:
            yield f"results {name}: {failure}"
        finally:
            content.close()


def _bounded(draft: Draft, bytes_max: int, room: int) -> Write:
    """Writes into a draft within the bounds, and lets the event loop in between."""
    pieces = 0

    def write(piece: bytes) -> None:
        nonlocal pieces
        pieces += 1
        if not pieces % REST_PIECES:
            time.sleep(REST_S)
            trio.from_thread.check_cancelled()
        size = draft.size_bytes + len(piece)
        if size > bytes_max:
            raise PayloadTooLarge(
                f"The result would be larger than {bytes_max} bytes; ask for less at a time, by a query."
            )
        if size > room:
            raise StorageFull(
                "The results of earlier jobs leave no room for this one; it is tried again when some have expired."
            )
        draft.write(piece)

    return write
