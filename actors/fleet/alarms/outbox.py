"""The outbox of alarms: lets the event log look at the devices whose alarms have opened or closed.

A device that turns writes a marker in the batch of what has turned it. The event log removes the marker in the batch of
the events that it opens and resolves. So each alarm is one event, also when the server is killed in between: then the
marker is there when the server starts, or the event is. A marker says only that there is something to look at, so a
device has one at most, however often it turns before the log looks.

The log also looks where alarms of events are open when a rule about events has changed, and when the server starts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.messages import TellAlarms
from trunkline.store import keys
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 64
"""Devices that a turn of the event log looks at: some milliseconds."""
_RETRY_S: Final = 1.0

_log = structlog.get_logger("trunkline.alarms")


class AlarmOutbox(Moved):
    """The markers that are stored, by application. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: Host) -> None:
        self._system = system
        self._waiting: dict[bytes, dict[bytes, None]] = {}
        self._busy: set[bytes] = set()
        self._to_review: dict[bytes, None] = {}
        """Applications of which a rule about events has changed."""
        self._is_reviewing = False
        self._added = trio.Event()
        system.forgotten.append(self._forget)

    @property
    def is_idle(self) -> bool:
        """Whether the event logs know everything."""
        return not (self._waiting or self._busy or self._to_review or self._is_reviewing)

    def add(self, application: bytes, device: bytes) -> None:
        """A marker is stored."""
        if application in self._system.moves.away:
            return  # it is found where the application comes
        self._waiting.setdefault(application, {})[device] = None
        self._added.set()

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._waiting.pop(application, None)
        self._to_review.pop(application, None)

    async def come(self, application: bytes) -> None:
        """Let the log of an application look."""
        await self._load(application)

    async def run(self) -> None:
        """Let the logs look, until cancelled."""
        self._system.component(AlarmIndex).on_heard_change = self._review_later
        await self._load()
        async with trio.open_nursery() as nursery:
            while True:
                await self._added.wait()
                self._added = trio.Event()
                await self._review()
                for application in self._waiting.keys() - self._busy:
                    self._busy.add(application)
                    nursery.start_soon(self._tell, application)

    async def _load(self, application: bytes = b"") -> None:
        """Note the markers of the store, or those of an application."""
        for holder, device in await self._system.read(partial(_stored, application)):
            self.add(holder, device)

    def _review_later(self, application: bytes) -> None:
        self._to_review[application] = None
        self._added.set()

    async def _review(self) -> None:
        """Let the logs look at all devices of whose events alarms are open."""
        self._is_reviewing = True
        while self._to_review:
            application, _ = self._to_review.popitem()
            try:
                found = await self._system.read(
                    partial(_places, prefix=keys.caused_alarms_prefix(application))
                )
            except StoreError as broken:  # damage of one application must not end the others' alarms
                _log.error("alarms of events not found", application=application.hex(), reason=str(broken))
                continue
            for _, device in found:
                self.add(application, device)
        self._is_reviewing = False

    async def _tell(self, application: bytes) -> None:
        """Let the log of an application look at its devices, one part after the other."""
        try:
            while waiting := self._waiting.pop(application, None):
                devices = list(waiting)[:_AT_ONCE]
                rest = dict.fromkeys(list(waiting)[_AT_ONCE:])
                if rest:
                    self._waiting[application] = rest
                await self._ask(application, devices)
        finally:
            self._busy.discard(application)

    async def _ask(self, application: bytes, devices: list[bytes]) -> None:
        try:
            await self._system.ask(Ref("eventLog", application, application), TellAlarms(devices))
        except NotFound:
            return  # the application is deleted
        except DomainError as refusal:
            _log.warning("alarms postponed", application=application.hex(), reason=refusal.message)
            for device in devices:
                self.add(application, device)
            await trio.sleep(_RETRY_S)


def _stored(application: bytes, snapshot: Snapshot) -> list[tuple[bytes, bytes]]:
    prefixes = keys.UNTOLD_ALARMS_PREFIX + application, keys.CAUSED_ALARMS_PREFIX + application
    return [place for prefix in prefixes for place in _places(snapshot, prefix)]


def _places(snapshot: Snapshot, prefix: bytes) -> list[tuple[bytes, bytes]]:
    """The applications and devices of these keys."""
    found = (bytes(key) for key in snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)))
    return [(key[-2 * keys.ID_BYTES : -keys.ID_BYTES], key[-keys.ID_BYTES :]) for key in found]
