"""Wills: what an MQTT client leaves to be published if its connection ends without a goodbye.

A will is stored before the client is told that it is connected, so that it is also published where the server ends
without one: at its next start (`Wills`). Owns the stored form and the recovery. The publisher of the client writes it
(`actor.py`).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
import trio

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.origin import Origin
from trunkline.actors.data.topics.publication import DisconnectClient, Publication
from trunkline.actors.data.topics.retained import decoded, encoded
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 256
"""Wills that are published together at the start: some milliseconds."""

_log = structlog.get_logger("trunkline.topics")


class Will(NamedTuple):
    """A will: what is published, whether it is retained, and who caused it."""

    publication: Publication
    retain: bool
    origin: Origin | None


def encode_will(will: Will) -> bytes:
    """The stored bytes of a will."""
    origin = will.origin
    return encode([encoded(will.publication), will.retain, origin and [origin.id, origin.type, origin.hops]])


def decode_will(raw: bytes, client: bytes) -> Will:
    """The will of a client of which `raw` are the stored bytes."""
    message, retain, origin = decode(raw)
    publication = decoded(message)
    publication.publisher = client
    return Will(publication, retain, None if origin is None else Origin(*origin))


class Wills:
    """A component of the system, and a task of its start."""

    def __init__(self, system: System) -> None:
        self._system = system

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Publish the wills of clients that were connected when the server stopped, before any client comes."""
        await self._recover()
        task_status.started()

    async def _recover(self) -> None:
        system, after = self._system, b""
        while True:
            with system.store.snapshot() as snapshot:
                found = list(islice(_keys_after(snapshot, after), _AT_ONCE))
            if not found:
                return
            after = found[-1]
            refs = [Ref("publisher", *place) for key in found if (place := keys.will_client(key)) is not None]
            message = DisconnectClient(publish_will=True)
            try:
                answers = await system.ask_each((ref, message) for ref in refs)
            except DomainError as refusal:  # they stay for the next start
                _log.warning("wills could not be published", reason=refusal.message)
                return
            for ref, answer in zip(refs, answers, strict=True):
                if isinstance(answer, DomainError) and not isinstance(answer, NotFound):
                    _log.warning(
                        "a will could not be published", application=ref.parent.hex(), reason=answer.message
                    )


def _keys_after(snapshot: Snapshot, after: bytes) -> Iterator[bytes]:
    """The keys of wills behind a key, application by application."""
    low: bytes | None = after + b"\x00"
    while low is not None and (key := next(snapshot.keys(keys.MESSAGES, low, None), None)) is not None:
        key = bytes(key)
        if keys.will_client(key) is not None:
            yield key
            low = key + b"\x00"
        else:
            application = key[: keys.ID_BYTES]
            wills = keys.wills_prefix(application)
            low = wills if key < wills else keys.prefix_end(application)
