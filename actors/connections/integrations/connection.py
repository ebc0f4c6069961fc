"""The connection of one integration: opened, kept, and opened again after a pause when it has ended.

Owns the life of a connection and its state as the API shows it. Does not own how it is opened (`opening.py`) and
how bytes are spoken (`mqtt.py`, `websocket.py`), nor which integrations are connected (`connections.py`).
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.connections.integrations.messages import NoteConnection, TakeMessages
from trunkline.actors.connections.integrations.session import Arrived, Failed, Session, Unsent
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.late_imports import load
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System

_log = structlog.get_logger("trunkline.actors")

_DOUBLED_MAX: Final = 20
"""A pause is doubled so often at most."""
_STEADY_S: Final = 60
"""After so long, the next pause is the shortest again."""


class Connection:
    """The connection of one integration. `settings` is the part of its record that the connection is made from.

    `counts` are counted for all connections: messages that arrived, connections that ended, attempts that failed.
    """

    def __init__(
        self, system: System, ref: Ref, settings: Doc, counts: Counter[str], *, private: bool
    ) -> None:
        self.ref = ref
        self.settings = settings
        self.session: Session | None = None
        self.ended = trio.Event()
        self._openings = trio.lowlevel.ParkingLot()
        self._system = system
        self._counts = counts
        self._private = private
        self._limits = system.limits
        self._random = Random(system.random_bytes(8))  # noqa: S311 - spreads attempts, guards nothing
        self._scope = trio.CancelScope()
        self._why = ""
        self._is_dropped = False
        self._connected_ms: int | None = None
        self._ended_ms: int | None = None
        self._next_ms: int | None = None
        self._error: str | None = None

    def end(self, why: str) -> None:
        """Close the connection, and do not open it again."""
        self._why = why
        self._scope.cancel()

    def drop(self) -> None:
        """Close the connection, and tell nobody."""
        self._is_dropped = True
        self._scope.cancel()

    @property
    def is_ending(self) -> bool:
        """Whether `end` or `drop` was called."""
        return self._scope.cancel_called

    async def opened(self) -> Session:
        """Wait until it is connected. Raises `Unsent` if that takes too long."""
        with trio.move_on_after(self._limits.outgoing_timeout_s):
            while self.session is None:
                await self._openings.park()
        if self.session is None:
            raise Unsent(f"the integration is not connected ({self._error or 'not yet'}).")
        return self.session

    def state(self) -> Doc:
        """The state, as the API shows it."""
        told: Doc = {"ts": self._ended_ms}
        if self._error is not None:
            told["error"] = self._error
        shown: Doc = {"connectInfo": {"ts": self._connected_ms}, "disconnectInfo": told}
        if self.session is not None:
            shown["lastKeepAlive"] = self.session.heard_ms
        if self._next_ms is not None:
            shown["nextAttempt"] = self._next_ms
        return shown

    async def run(self, before: Connection | None) -> None:
        """Keep the connection until `end`, or until the integration is gone. Begins when the one before has ended."""
        try:
            if before is not None:
                await before.ended.wait()
            with self._scope:
                await self._keep()
            if self._connected_ms is not None and not self._is_dropped:
                with trio.move_on_after(self._limits.outgoing_timeout_s, shield=True):
                    await self._note_end(Failed(self._why, 1000))
        except NotFound:
            return
        finally:
            self.ended.set()

    async def _keep(self) -> None:
        """Open sessions, one after the other. Raises `NotFound` if the integration is gone."""
        pauses = 0
        while True:
            began_s = trio.current_time()
            failed = await self._attempt()
            steady = self._connected_ms is not None and trio.current_time() - began_s > _STEADY_S
            pauses = 0 if steady else pauses + 1
            await self._note_end(failed)
            longest_s = min(
                self._limits.integration_pause_s * 2 ** min(pauses, _DOUBLED_MAX),
                self._limits.integration_pause_max_s,
            )
            pause_s = longest_s * self._random.uniform(0.5, 1)
            self._next_ms = self._system.clock.wall_ms() + round(pause_s * 1000)
            await trio.sleep(pause_s)

    async def _attempt(self) -> Failed:
        """Open a session and serve it; return why it has ended, or why it could not be opened.

        Raises `NotFound` if the integration is gone.
        """
        await load("trunkline.actors.connections.integrations.opening")
        from trunkline.actors.connections.integrations.opening import Opening, Rejected

        opening = Opening(self._system, self.ref, self.settings, private=self._private)
        failed = Failed("Connection Lost")
        missing: NotFound | None = None
        self._next_ms = None
        try:
            async with trio.open_nursery() as nursery:
                try:
                    with trio.fail_after(self._limits.outgoing_timeout_s):
                        session = await opening.open(nursery)
                    await self._serve(session)
                except Failed as ended:
                    failed = ended
                except Undelivered as refusal:
                    failed = Failed(str(refusal).rstrip("."))
                except NotFound as gone:
                    missing = gone
                except trio.TooSlowError:
                    failed = Failed(f"No answer within {self._limits.outgoing_timeout_s:g} seconds")
                nursery.cancel_scope.cancel()
        except* Rejected as rejected:
            answers = (each for each in rejected.exceptions if isinstance(each, Rejected))
            failed = Failed(f"Unexpected server response: {next(answers).status_code}")
        except* Failed as ended:
            failed = next(each for each in ended.exceptions if isinstance(each, Failed))
        except* Exception as bug:  # noqa: BLE001 - it must not end the connections of others
            _log.error("integration crashed", exc_info=bug, **self._ids)
            failed = Failed("The server failed to connect; the fault is logged")
        if missing is not None:
            raise missing
        return failed

    async def _serve(self, session: Session) -> None:
        """Hand what arrives to the actor, and acknowledge what is on disk. Raises `Failed` at the end."""
        self.session = session
        self._openings.unpark_all()
        self._connected_ms = self._system.clock.wall_ms()
        _log.info("integration connected", **self._ids)
        try:
            await self._tell(session.connected)
            while True:
                arrived = await session.receive()
                await self._hand_over(arrived)
                await session.acknowledge(arrived)
        finally:
            self.session = None
            await session.close()

    async def _hand_over(self, arrived: list[Arrived]) -> None:
        """Store the triggers of messages. What cannot be stored now is tried again; meanwhile nothing more is read."""
        pause_s = self._limits.integration_pause_s
        while True:
            try:
                await self._system.ask(self.ref, TakeMessages(arrived=arrived))
                self._counts["messages"] += len(arrived)
                return
            except NotFound:
                raise
            except DomainError as refusal:
                _log.warning("integration cannot store messages", reason=refusal.message, **self._ids)
            await trio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._limits.integration_pause_max_s)

    async def _note_end(self, failed: Failed) -> None:
        """Note why the connection has ended, or could not be opened, and tell the workflows."""
        was_open = self._connected_ms is not None
        self._counts["ended" if was_open else "failed"] += 1
        self._connected_ms, self._ended_ms, self._error = None, self._system.clock.wall_ms(), str(failed)
        _log.info(
            "integration disconnected" if was_open else "integration failed", reason=self._error, **self._ids
        )
        data: Doc = {"type": "disconnect" if was_open else "failure"}
        if self.settings["integrationType"] == "mqtt":
            data["disconnectReason" if was_open else "failureReason"] = self._error
        else:
            data["message"] = {"statusCode": failed.code, "reason": self._error}
        await self._tell(data)

    async def _tell(self, data: Doc) -> None:
        """Trigger what waits for a change of the connection. Nobody is answered, so a refusal is only logged."""
        try:
            await self._system.ask(self.ref, NoteConnection(data=data))
        except NotFound:
            raise
        except DomainError as refusal:
            _log.warning("integration cannot store a change", reason=refusal.message, **self._ids)

    @property
    def _ids(self) -> dict[str, str]:
        return {"application": self.ref.parent.hex(), "integration": self.ref.id.hex()}
