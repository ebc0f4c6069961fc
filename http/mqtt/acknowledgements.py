"""The acknowledgements of what a client sends: each leaves after the commit of what it acknowledges, in the order in
which the packets came (MQTT 5, 4.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import PendingAnswer, System
    from trunkline.actors.core.values.errors import DomainError

Answer = Callable[["DomainError | None"], bytes]
"""The packet that says whether something was stored. b"" for none."""


class _Entry:
    __slots__ = ("answer", "packet", "then")

    def __init__(self, answer: Answer, then: Callable[[], None] | None = None) -> None:
        self.answer = answer
        self.packet: bytes | None = None
        self.then = then


class Acknowledgements:
    """What one client waits for. `send` sends bytes."""

    __slots__ = ("_entries", "_send", "_system", "_turns")

    def __init__(self, system: System, send: Callable[[bytes], None]) -> None:
        self._system = system
        self._send = send
        self._entries: deque[_Entry] = deque()
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
            self._send(packet)
            return
        entry = _Entry(lambda _: packet)
        entry.packet = packet
        self._entries.append(entry)

    def wait(self) -> None:
        """Wait for the commits of this read: once for all turns of one actor that share a group."""
        turns, self._turns = self._turns, []
        if turns:
            self._system.when_all_stored(turns, self._settled)

    def drop(self) -> None:
        """The connection is over: nobody is answered any more."""
        self._entries.clear()

    def _settled(self, entries: list[_Entry], failure: DomainError | None) -> None:
        for entry in entries:
            entry.packet = entry.answer(failure)
        packets: list[bytes] = []
        following: list[Callable[[], None]] = []
        waiting = self._entries
        while waiting and waiting[0].packet is not None:
            entry = waiting.popleft()
            packets.append(entry.packet or b"")
            if entry.then is not None:
                following.append(entry.then)
        if packets:
            self._send(b"".join(packets))
        for then in following:
            then()
