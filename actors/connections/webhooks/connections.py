"""The WebSocket connections of webhooks that are open now, and the ends that workflows are still to be told of.

Owns how many there are in an application, which of them a workflow can send to, and when the server closes them. Each
is one of the lasting connections, of which an owner gets at most half (`System.lasting`). Does not own the connections
themselves (`http/resources/connections/webhook_connections.py`), nor what their triggers say (`actor.py`).
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import structlog
import trio

from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.connections.webhooks.messages import NoteConnectionEnd
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.moves import MOVED
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.revocations import Bearer
from trunkline.actors.core.values.errors import DomainError, Overloaded, StorageFull
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

GOING_AWAY: Final = 1001
"""The code with which connections are closed whose webhook is not there any more, or is another one."""
RESTARTS: Final = 1012
"""The code with which connections are closed whose clients are to connect again in a moment."""
ABNORMAL: Final = 1006
"""The code of connections that were open when the server was killed."""
CONNECTION_ID_BYTES: Final = keys.ID_BYTES
_KILLED: Final = "The server has stopped without closing the connection."
_AT_ONCE: Final = 64
"""Ends that are told with one commit."""
_PAUSE_S: Final = 1.0
"""The pause before ends that could not be stored are tried again."""

_log = structlog.get_logger("trunkline.actors")


class Connection(Protocol):
    """An open connection. Its methods never wait."""

    ref: Ref
    """The webhook."""
    id: bytes
    reply_id: str

    def send(self, message: bytes, *, text: bool) -> None:
        """Send a message after those before it."""
        ...

    def close(self, code: int, reason: str) -> None:
        """Close it; `WebhookConnections.ended` is called."""
        ...


class _End(NamedTuple):
    ref: Ref
    connection: bytes
    code: int
    reason: str

    @property
    def ask(self) -> tuple[Ref, NoteConnectionEnd]:
        return self.ref, NoteConnectionEnd(connection=self.connection, code=self.code, reason=self.reason)


class WebhookConnections(Moved):
    """The open connections of all webhooks, by application and by the id for replies. A component."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._owners = system.component(Owners)
        self._open: dict[bytes, dict[str, Connection]] = {}
        self._charged: dict[str, bytes] = {}
        """Who is charged for each, by its id for replies."""
        self._watches: dict[bytes, Bearer] = {}
        """What tells of the deletion of an application, by its id."""
        self._ends: deque[_End] = deque()
        """At most one for each connection that was opened since ends could be stored."""
        self._wake = trio.Event()
        system.forgotten.append(self._forget)

    def add(self, connection: Connection) -> None:
        """Add a connection before it is open. Raises `Overloaded` if the application or its owner has too many."""
        application, most = connection.ref.parent, self._system.limits.webhook_connections_max
        self._system.moves.check(application)
        opened = self._open.get(application, {})
        if len(opened) >= most:
            raise Overloaded(
                f"{most} WebSocket connections to webhooks of this application are open, which is the limit."
            )
        owner = self._owners.of(application)
        self._system.lasting.take_at_once(owner)
        self._charged[connection.reply_id] = owner
        self._open.setdefault(application, opened)[connection.reply_id] = connection
        self._watch(application)

    def remove(self, connection: Connection) -> None:
        """Forget a connection of which workflows were told nothing."""
        application = connection.ref.parent
        opened = self._open[application]
        del opened[connection.reply_id]
        self._system.lasting.leave(self._charged.pop(connection.reply_id))
        if not opened:
            del self._open[application]
            self._system.revocations.release(self._watches.pop(application))

    def ended(self, connection: Connection, code: int, reason: str) -> None:
        """Forget a connection, and tell the workflows that it has ended."""
        self.remove(connection)
        self._note_end(_End(connection.ref, connection.id, code, reason))

    def find(self, application: bytes, reply_id: str) -> Connection | None:
        """The open connection with this id for replies."""
        return self._open.get(application, {}).get(reply_id)

    def close(self, application: bytes, webhook: bytes | None, code: int, reason: str) -> None:
        """Close the connections of a webhook, or of all webhooks of an application."""
        for each in list(self._open.get(application, {}).values()):
            if webhook is None or each.ref.id == webhook:
                each.close(code, reason)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Tell of ends until cancelled; first of those that nobody has told of before the start."""
        await self._load()
        task_status.started()
        while True:
            while self._ends:
                if not await self._tell():
                    await trio.sleep(_PAUSE_S)
            self._wake = trio.Event()
            await self._wake.wait()

    async def leave(self, application: bytes) -> None:
        """Close the connections of an application."""
        self.close(application, None, RESTARTS, MOVED)

    async def come(self, application: bytes) -> None:
        """Tell of the ends of an application that nobody has told of."""
        await self._load(application)

    async def _load(self, application: bytes = b"") -> None:
        """Tell of the ends that nobody has told of, of all applications or of one."""
        for ref, connection in await self._system.read(partial(_untold, application)):
            self._note_end(_End(ref, connection, ABNORMAL, _KILLED))

    def _note_end(self, end: _End) -> None:
        if end.ref.parent not in self._system.moves.paused:  # else it is told where the application comes
            self._ends.append(end)
            self._wake.set()

    def _forget(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._ends = deque(end for end in self._ends if end.ref.parent != application)

    async def _tell(self) -> bool:
        """Tell of the first ends. False if that has to be tried again; an end is told once in any case."""
        first = [self._ends.popleft() for _ in range(min(_AT_ONCE, len(self._ends)))]
        try:
            answers = await self._system.ask_in_order(end.ask for end in first)
        except DomainError as failure:
            _log.warning("ends of connections put off", reason=failure.message)
            self._put_back(first)
            return False
        told = len(answers)
        refusal = answers[-1]
        if isinstance(refusal, Overloaded | StorageFull):
            _log.warning("ends of connections put off", reason=refusal.message)
            told -= 1
        self._put_back(first[told:])  # one that was refused for another reason has no application any more
        return told > 0

    def _put_back(self, ends: list[_End]) -> None:
        paused = self._system.moves.paused
        self._ends.extendleft(end for end in reversed(ends) if end.ref.parent not in paused)

    # Deleted applications.

    def _watch(self, application: bytes) -> None:
        if application not in self._watches:
            bearer = self._watches[application] = Bearer()
            bearer.add_subject(application)
            bearer.watchers[partial(self._application_changed, application)] = None
            self._system.revocations.hold(bearer)

    def _application_changed(self, application: bytes) -> None:
        self._system.revocations.release(self._watches.pop(application))
        self._watch(application)
        if not records.exists(self._system.journal, APPLICATION, ROOT, application):
            self.close(application, None, GOING_AWAY, "The application of the webhook was deleted.")


def _untold(application: bytes, snapshot: Snapshot) -> list[tuple[Ref, bytes]]:
    """The webhooks and the ids of the connections whose ends were not told."""
    found: list[tuple[Ref, bytes]] = []
    prefix = keys.WEBHOOK_CONNECTION_PREFIX + application
    for key in snapshot.keys(keys.META, prefix, keys.prefix_end(prefix)):
        ids = bytes(key[len(keys.WEBHOOK_CONNECTION_PREFIX) :])
        holder, webhook, connection = (
            ids[at : at + keys.ID_BYTES] for at in range(0, len(ids), keys.ID_BYTES)
        )
        found.append((Ref(WEBHOOK.name, holder, webhook), connection))
    return found
