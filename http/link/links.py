"""The open links of this process: one for each device, and what they leave behind when they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import structlog
import trio

from trunkline.actors.devices.head import NO_LINK, Head, LinkMark
from trunkline.actors.devices.messages import Connected, Disconnected, SetConnectionStatus
from trunkline.actors.runtime.ref import Ref
from trunkline.actors.runtime.system import System
from trunkline.actors.values.errors import DomainError, Gone, NotFound, Overloaded
from trunkline.actors.values.structs import Message

_log = structlog.get_logger("trunkline.link")


class Link(Protocol):
    """An open link."""

    device: Ref

    def supersede(self) -> None:
        """Another link of the device was opened."""
        ...


class Links:
    """A component of the system; run `run` for as long as the server listens."""

    def __init__(self, system: System) -> None:
        self.opened = 0
        """Links since the start."""
        self.superseded = 0
        self._system = system
        self._open: dict[Ref, Link] = {}
        self._nursery: trio.Nursery | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def run(self) -> None:
        """Run the tasks of links until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await trio.sleep_forever()

    def start_soon(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in a task of its own. It must not raise."""
        if self._nursery is not None:
            self._nursery.start_soon(work)

    def open(self, link: Link, session: int, address: str) -> LinkMark:
        """Make this the link of its device; return which frames of the session are stored.

        An older link of the device is closed. Raises `DomainError` if the device does not exist.
        """
        ref, system = link.device, self._system
        message = SetConnectionStatus(body=Connected(ip_address=address))
        if system.begin(ref, message) is None:
            raise Overloaded("The device is busy with a long call. Connect again in a second.")
        mark = Head.read(system.journal, ref.id).link
        older = self._open.get(ref)
        self._open[ref] = link
        self.opened += 1
        if older is not None:
            self.superseded += 1
            older.supersede()
        return mark if mark.session == session else NO_LINK

    def closed(self, link: Link, reason: str, from_client: int, to_client: int, address: str) -> None:
        """The link has ended. Its device is disconnected, unless it has a newer link."""
        ref = link.device
        if self._open.get(ref) is not link:
            return
        del self._open[ref]
        body = Disconnected(
            disconnect_reason=reason,
            messages_from_client=from_client,
            messages_to_client=to_client,
            ip_address=address,
        )
        message = SetConnectionStatus(body=body)
        try:
            if self._system.begin(ref, message) is None:
                self.start_soon(partial(self._log, ref, message))
        except DomainError as refusal:
            _log_refusal(ref, refusal)

    async def _log(self, ref: Ref, message: Message) -> None:
        try:
            await self._system.ask(ref, message)
        except DomainError as refusal:
            _log_refusal(ref, refusal)


def _log_refusal(ref: Ref, refusal: DomainError) -> None:
    if not isinstance(refusal, NotFound | Gone):
        _log.warning("the end of a link is not logged", device=ref.id.hex(), problem=refusal.message)
