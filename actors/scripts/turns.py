"""Whose turn it is to use a child process.

Owns the places, the calls that wait for one, and their order. Does not own the processes. Applications take turns by
what they use, not by how many calls they make: a free place goes to the application with the fewest running calls, and
among equals to the one that has used the processes for the shortest time. So an application whose scripts take
seconds does not make the short scripts of others wait for each of them.
"""

from __future__ import annotations

from collections import deque

import trio

from trunkline.actors.values.errors import Overloaded


class _Account:
    """What an application uses and waits for."""

    __slots__ = ("running", "used_s", "waiting")

    def __init__(self, used_s: float) -> None:
        self.running = 0
        self.used_s = used_s
        self.waiting: deque[trio.Event] = deque()


class Turns:
    """`places` calls run at a time, and at most `length_max` wait, half of them of one application."""

    def __init__(self, places: int, length_max: int) -> None:
        self._free = places
        self._places = places
        self._length_max = length_max
        self._length = 0
        self._accounts: dict[bytes, _Account] = {}

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return self._length

    async def take(self, application: bytes) -> None:
        """Take a place, which the caller gives back with `leave`. Raises `Overloaded` if too many wait already.

        If the caller is cancelled, it has no place.
        """
        account = self._accounts.get(application)
        if account is None:
            # A new application starts beside the one that used least, or it would go first for a long time.
            used_s = min((each.used_s for each in self._accounts.values()), default=0.0)
            account = self._accounts[application] = _Account(used_s)
        if self._free:
            self._free -= 1
            account.running += 1
            return
        self._check_room(len(account.waiting))
        turn = trio.Event()
        account.waiting.append(turn)
        self._length += 1
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.leave(application, 0)
            else:
                account.waiting.remove(turn)
                self._length -= 1
            raise

    def leave(self, application: bytes, used_s: float) -> None:
        """Give a place back that was used for so long."""
        account = self._accounts[application]
        account.running -= 1
        account.used_s += used_s
        self._free += 1
        if self._length:
            waiting = [each for each in self._accounts.values() if each.waiting]
            chosen = min(waiting, key=lambda each: (each.running, each.used_s))
            self._free -= 1
            self._length -= 1
            chosen.running += 1
            chosen.waiting.popleft().set()
        elif self._free == self._places:
            self._accounts.clear()

    def _check_room(self, waiting: int) -> None:
        if self._length >= self._length_max:
            raise Overloaded(f"{self._length} scripts wait for a process already; try again later.")
        if 2 * (waiting + 1) > self._length_max:
            raise Overloaded(
                f"{waiting} scripts of this application wait for a process already; try again later."
            )
