"""The open links of this process: which device has one, what it was given, and what is to be given to it.

A device has one link. A link carries the commands of its device and, if that is a gateway, those of its peripherals
that have no link of their own. What waits is in the store, with each device (`fleet/devices/commands/waiting.py`),
whose actor finds it. Owns how far each link has been given the commands of each device, so that none is given twice on
one link, none is left out, and they come in order.

Everything is called back in the event loop, so an open link takes no task. A command goes from the turn of its device
to its link right after the commit, if the link has been given all commands before it and has room. If not, the device
is `behind`: its commands are taken from the store, some at a time, by a turn of its actor (`DeliverCommands`), whenever
the link has room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING

import structlog
import trio

from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Forbidden, Gone, NotFound
from trunkline.actors.fleet.devices.commands.command_messages import (
    AcknowledgeCommand,
    DeliverCommands,
    GiveUpCommand,
    LinkClosed,
    LinkCommand,
    LinkOpened,
)
from trunkline.actors.fleet.devices.commands.link_session import LinkEnd, LinkSession
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.origin import Origin
    from trunkline.limits.window import Verdict
    from trunkline.store.snapshot import Snapshot

RETRY_S = 1.0
"""After so long a turn is tried again that the server refused because it was overloaded or its disk full."""
RECOVERED_LINKS = 256
"""Links of the time before the server stopped that one slice of the start ends: some milliseconds."""
_SCANNED_PERIPHERALS = 256
_STOPPED = "The server stopped."

_log = structlog.get_logger("trunkline.actors")


class Link:
    """One link of a device. Make one with `Links.open`.

    `given` has, for each device whose commands it carries and that is not behind, the number of the last command that
    it was given. `behind` are the devices with commands that it may have to be given.
    """

    __slots__ = (
        "application",
        "behind",
        "device",
        "given",
        "is_closed",
        "is_taking",
        "number",
        "owner",
        "peripherals_after",
        "session",
    )

    def __init__(
        self, application: bytes, device: bytes, number: int, session: LinkSession, owner: bytes
    ) -> None:
        self.application = application
        self.owner = owner
        self.device = device
        self.number = number
        self.session = session
        self.given: dict[bytes, int] = {}
        self.behind: dict[bytes, None] = {device: None}
        self.is_taking = False
        self.is_closed = False
        self.peripherals_after: bytes | None = None  # of a gateway: the last one that was looked at

    def lose(self, device: bytes) -> None:
        """Forget a peripheral that the link does not carry any more."""
        self.given.pop(device, None)
        self.behind.pop(device, None)

    def is_ready(self, device: bytes) -> bool:
        """Whether it would be given the next command of a device at once."""
        return device in self.given and device not in self.behind and self.session.has_room()


class Links(Moved):
    """The registry. `sent`, `acknowledged` and `expired` count commands since the start.

    `expired` counts a command when the server notices it: when the device connects, or when its list is full.
    """

    def __init__(self, system: System) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.expired = 0
        self._system = system
        self._owners = system.component(Owners)
        self._numbers = count(1)
        self._open: dict[bytes, Link] = {}
        self._retries: dict[int, Callable[[], None]] = {}
        self._has_retries = trio.Event()
        system.forgotten.append(self._forget_application)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._open.values()))

    def of(self, device: bytes) -> Link | None:
        """The open link of a device."""
        return self._open.get(device)

    # Opening and closing.

    def open(
        self,
        application: bytes,
        device: bytes,
        session: LinkSession,
        then: Callable[[DomainError | None], None],
        *,
        address: str | None = None,
        origin: Origin | None = None,
    ) -> tuple[Link, Verdict | None]:
        """Log that a device has a link; it is open when that is on disk, and gets the commands that wait.

        `then` is called with None just before the first commands come, or with the error if it was not stored: then
        there is no link. An older link of the device is ended at that time. Raises as `System.begin`, and `Overloaded`
        if the owner of the application has half of all connections; then there is no link either. Whoever gets a link
        calls `close`, also before `then` was called.
        """
        self._system.moves.check(application)
        owner = self._owners.of(application)
        link = Link(application, device, next(self._numbers), session, owner)
        message = LinkOpened(number=link.number, address=address, origin=origin)
        self._system.lasting.take_at_once(owner)
        try:
            pending = self._system.begin(Ref("device", application, device), message)
        except BaseException:
            self._system.lasting.leave(owner)
            raise
        assert pending is not None, "a device has no turn that waits"
        is_gateway, gateway = pending.value
        if is_gateway:
            link.peripherals_after = b""
        self._system.when_stored(pending, partial(self._opened, link, gateway, then))
        return link, pending.verdict

    def _opened(
        self,
        link: Link,
        gateway: bytes | None,
        then: Callable[[DomainError | None], None],
        error: DomainError | None,
    ) -> None:
        if error is None:
            older = self._open.pop(link.device, None)
            if not link.is_closed:
                self._open[link.device] = link
            if older is not None:
                older.session.end(LinkEnd.SUPERSEDED)
            carrier = self._open.get(gateway) if gateway is not None else None
            if carrier is not None:
                carrier.lose(link.device)
        then(error)
        if error is None:
            if link.application in self._system.moves.away:
                self._end_all(link.application, LinkEnd.MOVED)
            self.pump(link)

    def close(self, link: Link, reason: str) -> None:
        """Log that a link is closed. It carries nothing from now on. Idempotent; never raises."""
        if not link.is_closed:
            link.is_closed = True
            self._system.lasting.leave(link.owner)
        if self._open.get(link.device) is link:
            del self._open[link.device]
        received, sent = link.session.counts()
        most = 2**31 - 1
        message = LinkClosed(
            number=link.number,
            reason=reason[:1024],
            messages_from_client=min(received, most),
            messages_to_client=min(sent, most),
        )
        self._end(link.application, link.device, message)

    def _end(self, application: bytes, device: bytes, message: LinkClosed) -> None:
        try:
            pending = self._system.begin(Ref("device", application, device), message)
        except (NotFound, Gone, Forbidden):
            return  # its deletion has ended the link for the log
        except DomainError as refusal:
            self._log_later(device, refusal)
            self._later(-(message.number or 0), partial(self._end, application, device, message))
            return
        if pending is not None and pending.group is not None:  # else the application has been moved
            self._system.when_stored(pending, partial(self._ended, application, device, message))

    def _ended(
        self, application: bytes, device: bytes, message: LinkClosed, error: DomainError | None
    ) -> None:
        if error is not None:
            self._later(-(message.number or 0), partial(self._end, application, device, message))

    async def leave(self, application: bytes) -> None:
        """End the links of the devices of an application."""
        self._end_all(application, LinkEnd.MOVED)

    async def recover(self, application: bytes = b"") -> None:
        """End the links that were open when the server stopped, of all applications or of one.

        For the start, before the first link is opened. The time of their end is that of the start: nobody knows the
        other.
        """
        prefix = after = keys.OPEN_LINKS_PREFIX + application
        while True:
            with self._system.store.snapshot() as snapshot:
                found = list(islice(_keys_after(snapshot, prefix, after), RECOVERED_LINKS))
            if not found:
                return
            after = found[-1]
            ended = LinkClosed(number=None, reason=_STOPPED)
            refs = [
                Ref("device", key[-2 * keys.ID_BYTES : -keys.ID_BYTES], key[-keys.ID_BYTES :])
                for key in found
            ]
            try:
                answers = await self._system.ask_each((ref, ended) for ref in refs)
            except DomainError as refusal:  # the markers stay for the next start, or the next link
                _log.warning("the end of links could not be logged", reason=refusal.message)
                return
            for ref, answer in zip(refs, answers, strict=True):
                if isinstance(answer, DomainError) and not isinstance(answer, NotFound):
                    self._log_later(ref.id, answer)

    def _log_later(self, device: bytes, refusal: DomainError) -> None:
        _log.warning("the end of a link could not be logged yet", device=device.hex(), reason=refusal.message)

    def gone(self, device: bytes, gateway: bytes | None = None) -> None:
        """End the link of a deleted device; its gateway carries nothing for it any more."""
        self.moved(device, gateway, None)
        link = self._open.pop(device, None)
        if link is not None:
            link.session.end(LinkEnd.GONE)

    def _forget_application(self, application: bytes) -> None:
        """An application is deleted, or has left."""
        self._end_all(application, LinkEnd.MOVED if application in self._system.moves.away else LinkEnd.GONE)

    def _end_all(self, application: bytes, why: LinkEnd) -> None:
        for link in self:
            if link.application == application:
                self._open.pop(link.device, None)
                link.session.end(why)

    # Commands.

    def carrier(self, device: bytes, gateway: bytes | None) -> Link | None:
        """The link that carries the commands of a device."""
        own = self._open.get(device)
        return own if own is not None or gateway is None else self._open.get(gateway)

    def announce(self, device: bytes, gateway: bytes | None, command: LinkCommand) -> None:
        """Give a command, which waits in the store, to the link that carries it, if that may have it now."""
        link = self.carrier(device, gateway)
        if link is None:
            return
        if not link.is_ready(device):
            if command.id > link.given.get(device, -1):
                link.behind[device] = None
                self.pump(link)
        elif command.id > link.given[device]:
            link.given[device] = command.id
            self.give(link, (command if device == link.device else command._replace(device=device),))

    def give(self, link: Link, commands: Sequence[LinkCommand]) -> None:
        """Send commands over a link."""
        self.sent += len(commands)
        link.session.deliver(commands)

    def settle(self, application: bytes, device: bytes, message: AcknowledgeCommand | GiveUpCommand) -> None:
        """Tell a device what became of a command. Never raises: where that is refused, as for a peripheral that has
        gone elsewhere, the command comes again."""
        with suppress(DomainError):
            self._system.begin(Ref("device", application, device), message)

    def count_acknowledged(self) -> None:
        """A command was acknowledged."""
        self.acknowledged += 1

    def count_expired(self, number: int) -> None:
        """So many commands expired."""
        self.expired += number

    def moved(self, device: bytes, before: bytes | None, gateway: bytes | None) -> None:
        """A peripheral has another gateway than before, or none, or its own link has ended."""
        for each in (before, gateway):
            link = self._open.get(each) if each is not None else None
            if link is not None:
                link.lose(device)
        link = self.carrier(device, gateway)
        if link is not None and gateway is not None and link.device == gateway:
            link.behind[device] = None
            self.pump(link)

    def pump(self, link: Link) -> None:
        """Give a link what waits, as long as it has room. Cheap if nothing waits."""
        while not link.is_taking and self._open.get(link.device) is link and link.session.has_room():
            device = next(iter(link.behind), None)
            if device is not None:
                if not self._take(link, device):
                    return
            elif not self._find_peripherals(link):
                return

    def _take(self, link: Link, device: bytes) -> bool:
        """Take a turn of a device that gives its commands to the link. False: not now."""
        message = DeliverCommands(holder=link.device, number=link.number)
        try:
            pending = self._system.begin(Ref("device", link.application, device), message)
        except (NotFound, Gone, Forbidden):
            link.lose(device)
            if device == link.device:  # deleted while the link was opened
                self.gone(device)
            return True
        except DomainError:
            self._later(link.number, partial(self.pump, link))
            return False
        assert pending is not None
        if pending.group is not None:
            link.is_taking = True
            self._system.when_stored(pending, partial(self._taken, link))
        return True

    def _taken(self, link: Link, error: DomainError | None) -> None:
        link.is_taking = False
        if error is None:
            self.pump(link)
        elif self._open.get(link.device) is link:
            link.session.end(LinkEnd.FAILED)

    def _find_peripherals(self, link: Link) -> bool:
        """Note the next peripherals of a gateway for which commands wait as behind; False if there are no more."""
        after = link.peripherals_after
        if after is None:
            return False
        prefix = keys.waiting_peripherals_prefix(link.application, link.device)
        with self._system.store.snapshot() as snapshot:
            found = [
                key[-keys.ID_BYTES :]
                for key in islice(_keys_after(snapshot, prefix, prefix + after), _SCANNED_PERIPHERALS)
            ]
        link.peripherals_after = found[-1] if len(found) == _SCANNED_PERIPHERALS else None
        for device in found:
            if device not in link.given and device not in self._open:
                link.behind[device] = None
        return bool(found)

    # Trying again.

    def _later(self, key: int, call: Callable[[], None]) -> None:
        self._retries[key] = call
        self._has_retries.set()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """End the links that were open when the server stopped, then try again what was refused, until cancelled."""
        await self.recover()
        task_status.started()
        while True:
            await self._has_retries.wait()
            await trio.sleep(RETRY_S)
            self._has_retries = trio.Event()
            calls, self._retries = list(self._retries.values()), {}
            for call in calls:
                call()


def _keys_after(snapshot: Snapshot, prefix: bytes, after: bytes) -> Iterator[bytes]:
    """The keys in META with a prefix, behind `after`."""
    return (bytes(key) for key in snapshot.keys(keys.META, after + b"\x00", keys.prefix_end(prefix)))
