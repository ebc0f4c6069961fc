"""Replies: who waits for the answer of a run, by the id of the reply. The first answer is the one that counts.

Owns the waiting callers of webhooks and of the experience. In memory only: after a crash nobody waits any more. A
caller is not left waiting when all runs that its call has triggered have failed and nobody else can reply, or when one
of them found that the caller asks too often. Who waits keeps a connection for as long, so it takes one of the lasting
ones, of which an owner gets at most half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.values.errors import DomainError, Overloaded, Unanswered


class Expected:
    """A caller who waits, from a network address.

    `value` is None until the answer is there, `has_failed` says that there will be none, and `refusal` why not.
    """

    __slots__ = ("_event", "_runs", "address", "has_failed", "refusal", "value")

    def __init__(self, address: str) -> None:
        self.address = address
        self.value: Any = None
        self.refusal: DomainError | None = None
        self.has_failed = False
        self._runs = 0
        self._event = trio.Event()

    async def wait(self, timeout_s: float) -> Any:
        """The answer; None if there is none in time, or none any more."""
        with trio.move_on_after(timeout_s):
            await self._event.wait()
        return self.value

    def answer(self, value: Any) -> bool:
        """Give the answer. False if there was one already."""
        if self._event.is_set():
            return False
        self.value = value
        self._event.set()
        return True

    def refuse(self, refusal: DomainError) -> None:
        """Refuse the call, unless it was answered."""
        if not self._event.is_set():
            self.refusal = refusal
            self._event.set()

    def count(self, runs: int) -> None:
        """Note that so many runs were triggered that may answer, or, below 0, that they have failed."""
        self._runs += runs
        if self._runs == 0 and not self._event.is_set():
            self.has_failed = True
            self._event.set()


class Replies(Moved):
    """The callers who wait, by application: none is answered by another application. A component of the system.

    `owner_of` says who is charged for the connection of a caller, which is one of the `lasting` ones.
    """

    def __init__(self, lasting: OwnerShares, owner_of: Callable[[bytes], bytes]) -> None:
        self._lasting = lasting
        self._owner_of = owner_of
        self._expected: dict[tuple[bytes, str], Expected] = {}
        self._waiting: dict[bytes, int] = {}

    @contextmanager
    def expect(self, application: bytes, id: str, address: str) -> Iterator[Expected]:
        """Expect an answer with this id while the body runs. `address` is that of the caller.

        Raises `Overloaded` if the owner of the application has half of all connections.
        """
        place = (application, id)
        with self._lasting.place_at_once(self._owner_of(application)):
            expected = self._expected[place] = Expected(address)
            try:
                yield expected
            finally:
                del self._expected[place]

    @contextmanager
    def expect_few(self, application: bytes, id: str, address: str, most: int) -> Iterator[Expected]:
        """The same for a call of which only `most` may wait in one application. Raises `Overloaded`."""
        waiting = self._waiting.get(application, 0)
        if waiting >= most:
            raise Overloaded(
                f"{waiting} calls of this application wait for workflows; try again in a second."
            )
        self._waiting[application] = waiting + 1
        try:
            with self.expect(application, id, address) as expected:
                yield expected
        finally:
            self._waiting[application] -= 1
            if not self._waiting[application]:
                del self._waiting[application]

    async def leave(self, application: bytes) -> None:
        """Nobody answers those who wait: the runs that would are repeated in another process."""
        for place, expected in self._expected.items():
            if place[0] == application:
                expected.refuse(
                    Unanswered(
                        "The application is being moved to another partition before its workflow has answered; the "
                        "workflow will run there, and its answer goes to nobody."
                    )
                )

    def is_expected(self, application: bytes, id: str) -> bool:
        """Whether a caller waits for `id`."""
        return (application, id) in self._expected

    def find(self, application: bytes, id: str) -> Expected | None:
        """The caller who waits for `id`."""
        return self._expected.get((application, id))

    def reply(self, application: bytes, id: str, value: Any) -> bool:
        """Answer the caller who waits for `id`. False if nobody waits, or the caller has an answer."""
        expected = self._expected.get((application, id))
        return expected is not None and expected.answer(value)

    def count_runs(self, application: bytes, id: str, runs: int) -> None:
        """Note that a call has triggered so many runs, or, below 0, that they have failed and left nothing behind."""
        expected = self._expected.get((application, id))
        if expected is not None:
            expected.count(runs)
