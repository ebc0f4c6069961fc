"""The connections of all enabled integrations of this server. A component.

Owns which integrations are connected: those that are enabled, as many as the server allows, and none of an application
that is still being built. A change of a record takes effect when it is on disk.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
import trio

from trunkline.actors.connections.integrations.actor import Integration
from trunkline.actors.connections.integrations.connection import Connection
from trunkline.actors.connections.integrations.resource import CONNECTS, INTEGRATION, IntegrationBoard
from trunkline.actors.connections.integrations.session import Session, Unsent
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.revocations import Bearer
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.errors import StoreDamaged

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_USED: Final = ("integrationType", "topics")


_log = structlog.get_logger("trunkline.integrations")


class Connections(Moved):
    """The connections, by the ids of the integrations; and the integrations that wait because there are too many."""

    def __init__(self, system: System, *, private: bool) -> None:
        self.counts: Counter[str] = Counter()
        """Since the start: `messages` that arrived, connections that `ended`, attempts that `failed`."""
        self._system = system
        self._private = private
        self._open: dict[bytes, Connection] = {}
        self._waiting: dict[bytes, Ref] = {}
        self._watches: dict[bytes, Bearer] = {}
        """What wakes up when an application is deleted or gets an owner, by the id of the application."""
        self._nursery: trio.Nursery | None = None

    @property
    def enabled(self) -> int:
        """Integrations that have a connection, or wait for one."""
        return len(self._open) + len(self._waiting)

    @property
    def connected(self) -> int:
        """Connections that are open now."""
        return sum(each.session is not None for each in self._open.values())

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Connect what is enabled, until cancelled."""
        board = self._system.component(IntegrationBoard)
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            board.on_change, board.state_of = self._changed, self._state
            try:
                await self._load()
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def leave(self, application: bytes) -> None:
        """Close the connections of an application, as a stop does: its workflows are told nothing."""
        watch = self._watches.pop(application, None)
        if watch is not None:
            self._system.revocations.release(watch)
        ended = [each for each in self._open.values() if each.ref.parent == application]
        for connection in ended:
            connection.drop()
        for ref in [ref for ref in self._waiting.values() if ref.parent == application]:
            del self._waiting[ref.id]
        for connection in ended:
            await connection.ended.wait()

    async def come(self, application: bytes) -> None:
        """Connect what is enabled of an application."""
        await self._load(application)

    async def _load(self, application: bytes | None = None) -> None:
        for ref in await self._system.read(partial(_enabled, application)):
            self._changed(ref)

    async def publish(self, application: bytes, id: bytes, topic: str, message: str) -> None:
        """Publish a message to the broker of an integration, when it is connected. Raises `Unsent`."""
        await (await self._opened(application, id)).publish(topic, message)

    async def send(self, application: bytes, id: bytes, content: bytes, *, is_text: bool) -> None:
        """Send a message to the WebSocket server of an integration, when it is connected. Raises `Unsent`."""
        await (await self._opened(application, id)).send(content, is_text=is_text)

    async def _opened(self, application: bytes, id: bytes) -> Session:
        connection = self._open.get(id)
        if connection is None or connection.ref.parent != application:
            raise Unsent("there is no enabled integration with this id.")
        return await connection.opened()

    def _state(self, id: bytes) -> Doc | None:
        """The state of a connection, as the API shows it; None if the integration is not to be connected."""
        connection = self._open.get(id)
        if connection is not None:
            return connection.state()
        if id in self._waiting:
            bound = self._system.limits.integration_connections_max
            error = f"All {bound} connections of this server are in use, or half of them by this owner."
            return {"connectInfo": {"ts": None}, "disconnectInfo": {"ts": None, "error": error}}
        return None

    def _changed(self, ref: Ref) -> None:
        """Open, close or renew the connection of an integration whose record or application has changed."""
        if self._nursery is None:
            return
        settings = self._settings(ref)
        before = self._open.get(ref.id)
        self._waiting.pop(ref.id, None)
        if before is not None:
            if before.settings == settings and not before.is_ending:
                return
            before.end("Disabled" if settings is None else "Changed")
            if settings is None:
                return
        elif settings is None:
            return
        elif not self._has_place(ref.parent):
            self._waiting[ref.id] = ref
            return
        connection = self._open[ref.id] = Connection(
            self._system, ref, settings, self.counts, private=self._private
        )
        self._nursery.start_soon(self._run, connection, before)

    def _has_place(self, application: bytes) -> bool:
        """Whether there is a connection for one more integration: an owner gets at most half of all."""
        most, owners = self._system.limits.integration_connections_max, self._system.component(Owners)
        if len(self._open) >= most:
            return False
        owner = owners.of(application)
        return 2 * sum(owners.of(each.ref.parent) == owner for each in self._open.values()) < most

    async def _run(self, connection: Connection, before: Connection | None) -> None:
        await connection.run(before)
        if self._open.get(connection.ref.id) is connection:
            del self._open[connection.ref.id]
            for ref in list(self._waiting.values()):
                self._changed(ref)  # it waits again if there are still too many

    def _settings(self, ref: Ref) -> Doc | None:
        """What the connection of an integration is made from; None if it is not to be connected."""
        if ref.parent in self._system.moves.away:
            return None
        get = self._system.journal.get
        raw = records.raw_of(get, INTEGRATION, ref.parent, ref.id)
        doc: Doc = {} if raw is None else decode(raw)
        if not doc.get("enabled") or doc["integrationType"] not in CONNECTS:
            return None
        raw = records.raw_of(get, APPLICATION, ROOT, ref.parent)
        if raw is None:
            return None
        self._watch(ref.parent)
        if decode(raw)["ownerId"] == ROOT.hex():  # it is being built
            return None
        return {name: doc[name] for name in (*_USED, f"{doc['integrationType']}Config")}

    def _watch(self, application: bytes) -> None:
        """Learn when the application is deleted or gets another owner."""
        if application not in self._watches:
            bearer = self._watches[application] = Bearer()
            bearer.add_subject(application)
            bearer.watchers[partial(self._application_changed, application)] = None
            self._system.revocations.hold(bearer)

    def _application_changed(self, application: bytes) -> None:
        del self._watches[application]
        prefix = keys.record_prefix(INTEGRATION.name, application)
        end = keys.prefix_end(prefix)
        assert end is not None
        stored = [key[-keys.ID_BYTES :] for key, _ in self._system.journal.range(keys.RECORDS, prefix, end)]
        known = [ref.id for ref in self._refs() if ref.parent == application]
        for id in dict.fromkeys(stored + known):
            self._changed(Ref(Integration.kind, application, id))

    def _refs(self) -> list[Ref]:
        return [*(each.ref for each in self._open.values()), *self._waiting.values()]


def _enabled(only: bytes | None, snapshot: Snapshot) -> list[Ref]:
    """The integrations that are to be connected, of all applications or of one."""
    name = INTEGRATION.name
    prefix = keys.kind_prefix(name) if only is None else keys.record_prefix(name, only)
    found: list[Ref] = []
    for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
        application, id = bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]), bytes(key[-keys.ID_BYTES :])
        try:
            stored = records.find(snapshot, INTEGRATION, application, id)
        except StoreDamaged as damage:  # one damaged record must not prevent the start
            _log.error("integration not connected", id=id.hex(), reason=str(damage))
            continue
        if stored is not None and stored.doc["enabled"] and stored.doc["integrationType"] in CONNECTS:
            found.append(Ref(Integration.kind, application, id))
    return found
