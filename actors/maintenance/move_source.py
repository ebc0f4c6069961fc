"""The side of a move that gives an application away: the owner of the partition that has it.

Owns that the application is given away once, and taken back if it is not: until `depart` it belongs here, and from the
commit of `depart` on it does not. What the partition has of it is then void (`keys.foreign_key`), and the sweep removes
it. Does not own the copy, nor the order of a move (`move_target.py`), which asks for each step with the token of that
move. The application is taken back where the process of the other side has gone, or has asked for nothing for
`PATIENCE_S`.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors import moving
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.background import Background
from trunkline.actors.core.runtime.turns import as_domain_error
from trunkline.actors.core.values.errors import Invalid, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.application_keys import SWITCHED_MAX, switched
from trunkline.actors.maintenance.foreign import made_foreign
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError
from trunkline.store.flusher import Flusher
from trunkline.store.partitioned import SETTLE
from trunkline.store.sorted_runs import SortedRun, runs_of

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

PATIENCE_S: Final = 10.0
"""So long after the last word of the other side a move is given up."""
LOOK_S: Final = 0.2
"""So often it is looked whether the process of the other side is there. Meanwhile the application may be paused."""

Runs = list[SortedRun]
"""The runs of a store, as they are sent to another process."""

_log = structlog.get_logger("trunkline.moves")


class _Move:
    """An application that is about to leave. `held` is what the move holds; `paused_s` when it was paused."""

    def __init__(self, application: bytes, token: bytes, to: int) -> None:
        self.application = application
        self.token = token
        self.to = to
        self.held = ExitStack()
        self.is_paused = False
        self.is_over = False
        self.working = trio.Lock()
        self.heard_s = trio.current_time()


class MoveSource:
    """The moves of applications out of this partition. A component of the system."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._flusher = system.component(Flusher)
        self._moves: dict[bytes, _Move] = {}
        system.tells |= {
            "move.prepare": self.prepare,
            "move.pause": self.pause,
            "move.renew": self.renew,
            "move.depart": self.depart,
            "move.back": self.back,
        }

    async def prepare(self, application: bytes, token: bytes, to: int) -> None:
        """Begin a move to partition `to`: from now on the blocks of runs stay as they are."""
        with self._system.store.snapshot(own=True) as snapshot:
            if not records.exists(snapshot, APPLICATION, ROOT, application):
                raise Invalid(f"There is no application {application.hex()} here.")
            if snapshot.get(keys.META, keys.building_key(application)) is not None:
                raise Invalid("The application is being made by a job; move it when that has ended.")
        if await self._system.read(partial(_switches_much, application=application), own=True):
            raise Invalid(
                f"The application has more than {SWITCHED_MAX} files and other records with unique names, which a move "
                "would hold up the server with; stop the server, and use trunkline partition --count."
            )
        if application in self._moves:
            raise Overloaded("The application is being moved already.")
        move = self._moves[application] = _Move(application, token, to)
        move.held.enter_context(self._flusher.no_compaction())
        self._system.component(Background).begin(lambda: self._watch(move))
        async with move.working:
            await self._flusher.flush_all()

    async def pause(self, application: bytes, token: bytes) -> tuple[Runs, int]:
        """Pause the application. Return the runs with all that its devices have reported, and the last commit."""
        move = self._of(application, token)
        async with move.working:
            self._of(application, token)  # it may have been given up meanwhile
            move.is_paused = True
            await moving.leave(self._system, application)
            await self._flusher.flush_all()
            move.heard_s = trio.current_time()
        return self._runs(), self._system.store.arrivals.seq

    async def renew(self, application: bytes, token: bytes) -> Runs:
        """The move goes on. Return the runs, without one that is being written."""
        self._of(application, token)
        return [run for run in self._runs() if run.rows]

    async def depart(self, application: bytes, token: bytes) -> bool:
        """Give the application away if its copy is complete. Whether it does not belong here any more.

        On disk when this returns. May be asked for again, also after a restart, with a token that is not known then.
        """
        move = self._moves.get(application)
        if move is None or move.token != token:
            with self._system.store.snapshot(own=True) as snapshot:
                return snapshot.get(keys.META, keys.foreign_key(application)) is not None
        async with move.working:
            if move.is_over or not move.is_paused:
                return False
            partitions = self._system.store.partitions
            assert partitions is not None
            with partitions.locked(SETTLE, waits=True):
                if partitions.freshness is not None and not partitions.freshness.is_own(move.to):
                    return False  # another machine may decide just now that it was not given away
                with partitions.snapshot_of(move.to) as snapshot:
                    marker = snapshot.get(keys.META, keys.arrived_key(application))
                if marker is None or decode(marker)["token"] != token:
                    return False
                with self._system.store.snapshot(own=True) as snapshot:
                    departing = made_foreign(snapshot, application, move.to)
                try:
                    await self._system.journal.submit(departing).wait()
                except StoreError as error:
                    raise as_domain_error(error) from error
            self._end(move)
            self._system.component(Places).moved(application, move.to)
            self._system.resume(application)
        return True

    async def back(self, application: bytes, token: bytes) -> None:
        """The move has failed: take the application back. Nothing if that was done, or if it was given away."""
        move = self._moves.get(application)
        if move is not None and move.token == token:
            await self._take_back(move)

    # A move that is not completed.

    def _of(self, application: bytes, token: bytes) -> _Move:
        move = self._moves.get(application)
        if move is None or move.token != token:
            raise Overloaded("The move was given up, as its other process was not heard of; begin it again.")
        move.heard_s = trio.current_time()
        return move

    async def _watch(self, move: _Move) -> None:
        """Take the application back if the other side has gone, or nothing is heard of it."""
        peers = self._system.peers
        assert peers is not None
        while not move.is_over:
            await trio.sleep(LOOK_S)
            async with move.working:
                is_silent = trio.current_time() >= move.heard_s + PATIENCE_S
            if move.is_over or not (is_silent or move.to in peers.unreachable()):
                continue
            _log.warning("a move was given up", application=move.application.hex(), partition=move.to)
            try:
                await self._take_back(move)
            except Exception:  # noqa: BLE001 - a fault in one application must not end the others
                _log.exception("an application was not taken back", application=move.application.hex())
                await trio.sleep(PATIENCE_S)

    async def _take_back(self, move: _Move) -> None:
        async with move.working:
            if move.is_over:
                return
            if move.is_paused:
                await moving.come(self._system, move.application)
            self._end(move)

    def _end(self, move: _Move) -> None:
        move.is_over = True
        move.held.close()
        self._moves.pop(move.application, None)

    def _runs(self) -> Runs:
        with self._system.store.snapshot(own=True) as snapshot:
            return list(runs_of(snapshot))


def _switches_much(snapshot: Snapshot, application: bytes) -> bool:
    return next(islice(switched(snapshot, application), SWITCHED_MAX, None), None) is not None
