"""Shares by owner: who may use the places of something that the whole server has only so many of.

Owns the places, the calls that wait for one, and their order. Does not own what is done at a place, nor who owns an
application (`core/records/owners.py`). What is shared is charged to an owner: the user or the organization to whom the
application belongs, so that thirty applications of one user get no more than one. What has no application is charged
to the user who calls, and what anybody may ask for to the address that asks.

A free place goes to the owner with the fewest places, and among equals to the one that has used them for the shortest
time. A call may need several places; those behind it do not pass it. If as many calls wait as may, a call of an owner
with fewer of them takes the room of the newest call of the owner with the most. So who has filled the room is refused,
never somebody else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import trio

from trunkline.actors.core.runtime.precedence import compute_in_turn
from trunkline.actors.core.values.errors import Overloaded

T = TypeVar("T")

_ACCOUNTS_MAX: Final = 1024
"""Owners that use nothing now, but have used the places for longer than others, are forgotten above this number."""


class _Turn:
    """A call that waits until it has a place or a refusal."""

    __slots__ = ("given", "places", "refusal", "settled")

    def __init__(self, places: int) -> None:
        self.places = places
        self.settled = trio.Event()
        self.given = False
        self.refusal: Overloaded | None = None


class _Account:
    """What an owner uses and waits for."""

    __slots__ = ("running", "used_s", "waiting")

    def __init__(self, used_s: float) -> None:
        self.running = 0
        self.used_s = used_s
        self.waiting: deque[_Turn] = deque()

    @property
    def rank(self) -> tuple[int, float]:
        """Who has the least is first."""
        return self.running, self.used_s

    @property
    def is_idle(self) -> bool:
        return not self.running and not self.waiting


class _PlaceOfThread:
    """A place that is taken before a thread begins, and left when it has ended."""

    __slots__ = ("_began_s", "_owner", "_shares")

    def __init__(self, shares: OwnerShares, owner: Hashable) -> None:
        self._shares = shares
        self._owner = owner
        self._began_s = 0.0

    async def acquire_on_behalf_of(self, _thread: object) -> None:
        await self._shares.take(self._owner)
        self._began_s = trio.current_time()

    def release_on_behalf_of(self, _thread: object) -> None:
        self._shares.leave(self._owner, trio.current_time() - self._began_s)


class OwnerShares:
    """`places` may be used at a time, and at most `waiting_max` calls wait for one.

    `what` and `whose` say in the plural what is done and by whom, for sentences. For each place that an owner has,
    `leaves` places stay free for others: with 1 an owner gets at most half of the places, so a new owner finds one
    however long the others keep theirs; with 0 one owner may use all places while nobody else waits.
    """

    def __init__(
        self, what: str, places: int, waiting_max: int = 0, *, leaves: int = 0, whose: str = "of this owner"
    ) -> None:
        self.what = f"{what} {whose}"
        self.places = places
        self.waiting_max = waiting_max
        self.leaves = leaves
        self.refused = 0
        """Calls that were refused since the start."""
        self._free = places
        self._length = 0
        self._accounts: dict[Hashable, _Account] = {}
        self._waiting: dict[Hashable, _Account] = {}
        """The accounts with calls that wait; at the front those that were not served for the longest time."""

    @property
    def running(self) -> int:
        """The number of places that are used."""
        return self.places - self._free

    @property
    def waiting(self) -> int:
        """The number of calls that wait."""
        return self._length

    def running_of(self, owner: Hashable) -> int:
        """The number of places that an owner uses."""
        account = self._accounts.get(owner)
        return 0 if account is None else account.running

    def has_place(self, owner: Hashable) -> bool:
        """Whether a place is free for an owner."""
        return self.running_of(owner) * self.leaves < self._free

    # Using a place.

    @asynccontextmanager
    async def place(self, owner: Hashable, places: int = 1) -> AsyncIterator[None]:
        """Have a place meanwhile, or several, at most all. Raises as `take`."""
        places = max(1, min(places, self.places))
        await self.take(owner, places)
        began_s = trio.current_time()
        try:
            yield
        finally:
            self.leave(owner, places * (trio.current_time() - began_s), places)

    @contextmanager
    def place_at_once(self, owner: Hashable) -> Iterator[None]:
        """Have a place meanwhile, without waiting for one. Raises as `take_at_once`."""
        self.take_at_once(owner)
        try:
            yield
        finally:
            self.leave(owner)

    async def in_thread(self, owner: Hashable, work: Callable[[], T], *, abandons: bool = False) -> T:
        """Do the work in a thread, at a place.

        A cancelled caller returns when the work has ended; with `abandons` at once, and the place is taken until then.
        """
        place: Any = _PlaceOfThread(self, owner)  # has what `CapacityLimiter` has for this
        return await trio.to_thread.run_sync(work, limiter=place, abandon_on_cancel=abandons)

    async def compute(self, owner: Hashable, work: Callable[[], T]) -> T:
        """Do work that computes in a thread, at a place, as `compute_in_turn` says."""
        return await self.in_thread(owner, partial(compute_in_turn, owner, work))

    # Taking and leaving.

    async def take(self, owner: Hashable, places: int = 1) -> None:
        """Take places, which the caller gives back with `leave`. Raises `Overloaded` if too many calls wait.

        If the caller is cancelled, it has no place.
        """
        account = self._account(owner)
        if self._may_run(account, places) and not account.waiting and self._is_next(account):
            self._give(account, places)
            return
        self._make_room(owner, account)
        turn = _Turn(places)
        account.waiting.append(turn)
        self._waiting[owner] = account
        self._length += 1
        try:
            await turn.settled.wait()
        except BaseException:
            if turn.given:
                self.leave(owner, places=places)
            elif turn.refusal is None:
                self._withdraw(owner, account, turn)
                self._pass_on()  # smaller calls may have waited behind this one
                self._forget_idle(owner, account)
            raise
        if turn.refusal is not None:
            raise turn.refusal

    def take_at_once(self, owner: Hashable) -> None:
        """Take a place, which the caller gives back with `leave`. Raises `Overloaded` if none is free for the owner."""
        account = self._account(owner)
        if self._may_run(account) and not account.waiting:
            self._give(account)
            return
        self._forget_idle(owner, account)
        raise self._refusal(account.running, "are under way")

    def leave(self, owner: Hashable, used_s: float = 0.0, places: int = 1) -> None:
        """Give places back that were used for so long, the times of all together."""
        account = self._accounts[owner]
        account.running -= places
        account.used_s += used_s
        self._free += places
        self._pass_on()
        self._forget_idle(owner, account)

    # The order.

    def _may_run(self, account: _Account, places: int = 1) -> bool:
        return account.running * self.leaves < self._free and places <= self._free

    def _is_next(self, account: _Account) -> bool:
        """Whether nobody waits who is first, such as a call that needs more places than are free."""
        return not self._waiting or account.rank < min(each.rank for each in self._waiting.values())

    def _give(self, account: _Account, places: int = 1) -> None:
        self._free -= places
        account.running += places

    def _pass_on(self) -> None:
        """Give the free places to calls that wait."""
        while self._free and self._waiting:
            owner, account = min(self._waiting.items(), key=lambda each: each[1].rank)
            turn = account.waiting[0]
            if not self._may_run(account, turn.places):
                return  # the others have as many places or more, or do not pass it
            self._withdraw(owner, account, turn)
            if account.waiting:
                self._waiting[owner] = self._waiting.pop(owner)  # behind the others
            self._give(account, turn.places)
            turn.given = True
            turn.settled.set()

    def _make_room(self, owner: Hashable, account: _Account) -> None:
        """Have room for one more call that waits. Raises `Overloaded` if it is this owner who has filled it."""
        if self._length < self.waiting_max:
            return
        own = len(account.waiting)
        most, longest = max(
            self._waiting.items(), key=lambda each: len(each[1].waiting), default=(owner, account)
        )
        if len(longest.waiting) <= own + 1:
            self._forget_idle(owner, account)
            raise self._refusal(own, "wait")
        newest = longest.waiting[-1]
        newest.refusal = self._refusal(len(longest.waiting), "wait")
        self._withdraw(most, longest, newest)
        newest.settled.set()

    def _withdraw(self, owner: Hashable, account: _Account, turn: _Turn) -> None:
        """A call does not wait any longer."""
        account.waiting.remove(turn)
        self._length -= 1
        if not account.waiting:
            self._waiting.pop(owner, None)

    def _refusal(self, own: int, verb: str) -> Overloaded:
        self.refused += 1
        return Overloaded(
            f"{own} {self.what} {verb} already; there is no room for more now. Try again later."
        )

    # Accounts.

    def _account(self, owner: Hashable) -> _Account:
        """The account of an owner. Who was idle begins beside the one that used least: idle time is not saved up."""
        account = self._accounts.get(owner)
        if account is None:
            account = self._accounts[owner] = _Account(self._floor_s())
        elif account.is_idle:
            account.used_s = max(account.used_s, self._floor_s())
        return account

    def _floor_s(self) -> float:
        if not self.waiting_max:
            return 0.0  # nobody waits, so nobody's time is compared
        return min((each.used_s for each in self._accounts.values() if not each.is_idle), default=0.0)

    def _forget_idle(self, owner: Hashable, account: _Account) -> None:
        if self._free == self.places and not self._length:
            self._accounts.clear()
        elif account.is_idle and (account.used_s <= self._floor_s() or len(self._accounts) > _ACCOUNTS_MAX):
            self._accounts.pop(owner, None)
