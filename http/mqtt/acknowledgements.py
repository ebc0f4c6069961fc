"""The acknowledgements of what a client sends: each leaves after the commit of what it acknowledges, in the order in
which the packets came (MQTT 5, 4.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import PendingAnswer
    from trunkline.actors.core.values.errors import DomainError
    from trunkline.http.mqtt.service import MqttService

Answer = Callable[["DomainError | None"], bytes]
"""The packet that says whether something was stored. b"" for none."""


class _Entry:
    __slots__ = ("answer", "packet", "then")

    def __init__(self, answer: Answer, then: Callable[[], None] | None = None) -> None:
        self.answer = answer
        self.packet: bytes | None = None
        self.then = then


class Recipient(Protocol):
    """The connection of a client that is answered."""

    service: MqttService

    def send(self, data: bytes) -> None:
        """Send bytes, if the connection is open."""


class Acknowledgements:
    """What one client waits for."""

    __slots__ = ("_entries", "_session", "_turns")

    def __init__(self, session: Recipient) -> None:
        self._session = session
        self._entries: list[_Entry] = []  # an empty deque takes ten times the memory
        self._turns: list[tuple[_Entry, PendingAnswer]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def after(self, turn: PendingAnswer, answer: Answer, then: Callable[[], None] | None = None) -> None:
        """Answer when the writes of a turn are on disk, and call `then` behind the answer. Call `wait` at the end of a
        read."""
        entry = _Entry(answer, then)
        self._entries.append(entry)
        self._turns.append((entry, turn))

    def at_once(self, packet: bytes) -> None:
        """Answer with this packet, behind what waits before it."""
        if not self._entries:
            self._session.send(packet)
            return
        entry = _Entry(lambda _: packet)
        entry.packet = packet
        self._entries.append(entry)

    def wait(self) -> None:
        """Wait for the commits of this read: once for all turns of one actor that share a group."""
        turns, self._turns = self._turns, []
        if turns:
            self._session.service.system.when_all_stored(turns, self._settled)

    def drop(self) -> None:
        """The connection is over: nobody is answered any more."""
        self._entries.clear()

    def let_go(self, gone: Recipient) -> None:
        """The session is over; this is in its place."""
        self._session = gone

    def _settled(self, entries: list[_Entry], failure: DomainError | None) -> None:
        for entry in entries:
            entry.packet = entry.answer(failure)
        packets: list[bytes] = []
        following: list[Callable[[], None]] = []
        waiting = self._entries
        for entry in waiting:
            if entry.packet is None:
                break
            packets.append(entry.packet)
            if entry.then is not None:
                following.append(entry.then)
        if packets:
            del waiting[: len(packets)]
            self._session.send(b"".join(packets))
        for then in following:
            then()
