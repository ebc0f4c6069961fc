"""Ends the sessions of MQTT clients that have stayed away for too long, and removes what waited for ended ones.

A task in the background. Sessions are ended and messages removed by turns of their actors, some at a time; what is to
be done is in the store, so it goes on after a restart. A session that the server has not closed, because it was killed,
counts as left at the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.data.topics.session_actor import (
    CloseSession,
    EndSession,
    MqttSessionActor,
    RemoveWaiting,
)
from trunkline.actors.data.topics.session_records import applications_of, decode_session
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.structs import Message
    from trunkline.store.snapshot import Snapshot

SWEEP_S: Final = 5.0
"""How often it is looked for sessions whose time is over: they may end this much late."""
_AT_ONCE: Final = 256
"""Sessions, or messages of one, in one commit: some milliseconds."""

_log = structlog.get_logger("trunkline.topics")


class SessionSweep(Moved):
    """A component of the system. `ended` counts sessions that were ended since the start."""

    def __init__(self, system: System) -> None:
        self.ended = 0
        self._system = system

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Close what the last run of the server has left open, then sweep until cancelled."""
        await self.recover()
        task_status.started()
        while True:
            await trio.sleep(SWEEP_S)
            while await self.sweep():
                await trio.lowlevel.checkpoint()

    async def sweep(self) -> bool:
        """End sessions and remove messages of ended ones. True if some is done, and there may be more to do at once."""
        now_ms = self._system.clock.wall_ms()
        with self._system.store.snapshot() as snapshot:
            here = list(applications_of(snapshot, self._system.moves.away))
            due = list(islice(_due(snapshot, here, now_ms), _AT_ONCE))
            removals = list(islice(_removals(snapshot, here), 1))
        ended = await self._ask([(ref, EndSession()) for ref in due])
        self.ended += ended
        removed = await self._ask(removals)
        return removed > 0 or ended == _AT_ONCE

    async def recover(self, application: bytes = b"") -> None:
        """Close the sessions that are noted as open, of all applications or of one."""
        with self._system.store.snapshot() as snapshot:
            open_ones = list(_open(snapshot, [application] if application else applications_of(snapshot)))
        for start in range(0, len(open_ones), _AT_ONCE):
            await self._ask(open_ones[start : start + _AT_ONCE])

    async def _ask(self, asks: list[tuple[Ref, Message]]) -> int:
        """Ask sessions one after the other, as they share messages and a count.

        Returns how many have answered; what is refused is tried again by the next sweep.
        """
        if not asks:
            return 0
        try:
            answers = await self._system.ask_in_order(asks, past_refusals=True)
        except DomainError as refusal:
            _log.warning("MQTT sessions could not be swept", reason=refusal.message)
            return 0
        refused = [each for each in answers if isinstance(each, DomainError)]
        for each in refused:
            if not isinstance(each, NotFound):
                _log.warning("an MQTT session could not be swept", reason=each.message)
        return len(answers) - len(refused)


def _due(snapshot: Snapshot, applications: Iterable[bytes], now_ms: int) -> Iterator[Ref]:
    """The sessions whose time is over."""
    for application in applications:
        prefix = keys.away_prefix(application)
        for key in snapshot.keys(keys.MESSAGES, prefix, keys.prefix_end(prefix)):
            ends_ms, client = keys.away_of_key(bytes(key))
            if ends_ms > now_ms:
                break
            yield Ref(MqttSessionActor.kind, application, client)


def _open(snapshot: Snapshot, applications: Iterable[bytes]) -> Iterator[tuple[Ref, Message]]:
    """The sessions that are not noted as left."""
    for application in applications:
        prefix = keys.sessions_prefix(application)
        for key, raw in snapshot.range(keys.MESSAGES, prefix, keys.prefix_end(prefix)):
            record = decode_session(bytes(raw))
            if record.away_ms is None:
                ref = Ref(MqttSessionActor.kind, application, bytes(key[-keys.ID_BYTES :]))
                yield ref, CloseSession(session=record.id)


def _removals(snapshot: Snapshot, applications: Iterable[bytes]) -> Iterator[tuple[Ref, Message]]:
    """What is to be removed of sessions that have ended, a part of each."""
    for application in applications:
        prefix = keys.ended_sessions_prefix(application)
        for key, raw in snapshot.range(keys.MESSAGES, prefix, keys.prefix_end(prefix)):
            session = bytes(key[-keys.ID_BYTES :])
            client, below = decode(bytes(raw))
            waiting = keys.queue_prefix(application, session)
            end = keys.queue_key(application, session, below)
            received = keys.received_prefix(application, session)
            numbers = [
                int.from_bytes(each[-8:], "big")
                for each in islice(snapshot.keys(keys.MESSAGES, waiting, end), _AT_ONCE)
            ]
            packet_ids = [
                int.from_bytes(each[-2:], "big")
                for each in islice(
                    snapshot.keys(keys.MESSAGES, received, keys.prefix_end(received)), _AT_ONCE
                )
            ]
            message = RemoveWaiting(
                session=session,
                numbers=tuple(numbers),
                packet_ids=tuple(packet_ids),
                is_last=len(numbers) < _AT_ONCE and len(packet_ids) < _AT_ONCE,
            )
            yield Ref(MqttSessionActor.kind, application, client), message
