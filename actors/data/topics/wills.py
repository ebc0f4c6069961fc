"""Wills: what an MQTT client leaves to be published if its connection ends without a goodbye.

A will is stored before the client is told that it is connected, so that it is also published where the server ends
without one: at its next start. Owns the stored form, the delays and the recovery. The publisher of the client writes it
(`actor.py`).
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
import trio

from trunkline.actors.access.certificates import CERTIFICATE
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.topics.publication import DisconnectClient, Publication, PublishDueWill
from trunkline.actors.data.topics.retained import decoded, encoded
from trunkline.actors.data.topics.session_records import applications_of
from trunkline.actors.platform.applications.keys import APPLICATION_KEY
from trunkline.limits.log_lines import LogLines
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 256
"""Wills that are published together at the start: some milliseconds."""

_LOOK_S: Final = 30.0
"""How often the clock is looked at: it may be set meanwhile."""
_AGAIN_MS: Final = 1_000
"""A will that could not be stored is tried again after this time."""
_LINES_PER_MINUTE_MAX: Final = 60

_log = structlog.get_logger("trunkline.topics")


class Will(NamedTuple):
    """A will: what is published, whether it is retained, who caused it, and how long after the end of the connection.

    `login` is the id of the access key or certificate of its client, in whose name it is published; None for a token.
    `due_ms` is when it is to be published, None while its client is connected.
    """

    publication: Publication
    retain: bool
    origin: Origin | None
    login: bytes | None = None
    delay_s: int = 0
    due_ms: int | None = None


def encode_will(will: Will) -> bytes:
    """The stored bytes of a will."""
    origin = will.origin
    by = None if origin is None else [origin.id, origin.type, origin.hops]
    return encode([encoded(will.publication), will.retain, by, will.login, will.delay_s, will.due_ms])


def decode_will(raw: bytes, client: bytes) -> Will:
    """The will of a client of which `raw` are the stored bytes."""
    message, retain, origin, login, delay_s, due_ms = decode(raw)
    publication = decoded(message)
    publication.publisher = client
    return Will(publication, retain, None if origin is None else Origin(*origin), login, delay_s, due_ms)


def may_be_published(snapshot: Snapshot, application: bytes, will: Will) -> bool:
    """Whether the access key or certificate of its client still gives access."""
    if will.login is None:
        return True
    found = [records.find(snapshot, kind, application, will.login) for kind in (APPLICATION_KEY, CERTIFICATE)]
    return any(each is not None and each.doc["status"] == "active" for each in found)


class Wills(Moved):
    """A component of the system: publishes wills when their delays are over."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._due: list[tuple[int, Ref]] = []
        self._changed = trio.Event()
        self._lines = LogLines(_LINES_PER_MINUTE_MAX)
        system.forgotten.append(self._forget)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take care of the wills of clients that were connected when the server stopped, before any client comes; then
        publish each when it is due, until cancelled."""
        await self.recover()
        task_status.started()
        while True:
            wait_s = math.inf
            if self._due:
                wait_s = max(0.0, (self._due[0][0] - self._system.clock.wall_ms()) / 1000)
            with trio.move_on_after(min(wait_s, _LOOK_S)):
                await self._changed.wait()
            self._changed = trio.Event()
            await self.publish_due()

    def schedule(self, ref: Ref, due_ms: int) -> None:
        """A will is to be published at this time. Forgotten with the server, which finds it at its next start."""
        heapq.heappush(self._due, (due_ms, ref))
        self._changed.set()

    async def publish_due(self) -> None:
        """Publish the wills whose time has come. One that is refused now is tried again later."""
        now_ms = self._system.clock.wall_ms()
        due = []
        while self._due and self._due[0][0] <= now_ms:
            due.append(heapq.heappop(self._due)[1])
        for start in range(0, len(due), _AT_ONCE):
            refs = due[start : start + _AT_ONCE]
            for ref, answer in zip(refs, await self._tell(refs, PublishDueWill()), strict=True):
                if ref.parent in self._system.moves.away:
                    continue  # it is looked for where the application comes
                if isinstance(answer, DomainError) and not isinstance(answer, NotFound):
                    self._warn("a will is published later", ref, answer)
                    self.schedule(ref, now_ms + _AGAIN_MS)

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._due = [each for each in self._due if each[1].parent != application]
        heapq.heapify(self._due)

    async def recover(self, application: bytes = b"") -> None:
        """Take care of the wills of clients that were connected when the server stopped, of all applications or one."""
        with self._system.store.snapshot() as snapshot:
            left = list(_publishers(snapshot, [application] if application else applications_of(snapshot)))
        for start in range(0, len(left), _AT_ONCE):
            refs = left[start : start + _AT_ONCE]
            message = DisconnectClient(publish_will=True)
            for ref, answer in zip(refs, await self._tell(refs, message), strict=True):
                if isinstance(answer, DomainError) and not isinstance(answer, NotFound):
                    self._warn("a will could not be published", ref, answer)  # it stays for the next start

    def _warn(self, what: str, ref: Ref, refusal: DomainError) -> None:
        """Log why a will is not published now, if the bound on such lines allows: there may be many wills."""
        left_out = self._lines.take(self._system.clock.monotonic_s())
        if left_out is not None:
            _log.warning(what, application=ref.parent.hex(), reason=refusal.message, **left_out)

    async def _tell(self, refs: list[Ref], message: Message) -> list[Any]:
        """Tell publishers one after the other, as several may write to one queue. Returns answers and refusals."""
        try:
            return await self._system.ask_in_order([(ref, message) for ref in refs], past_refusals=True)
        except DomainError as failure:  # of a commit
            return [failure] * len(refs)


def _publishers(snapshot: Snapshot, applications: Iterable[bytes]) -> Iterator[Ref]:
    """The publishers of the clients that have wills."""
    for application in applications:
        prefix = keys.wills_prefix(application)
        for key in snapshot.keys(keys.MESSAGES, prefix, keys.prefix_end(prefix)):
            yield Ref("publisher", application, bytes(key[-keys.ID_BYTES :]))
