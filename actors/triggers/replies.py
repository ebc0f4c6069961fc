"""Replies: who waits for the answer of a run, by the id of the reply. The first answer is the one that counts.

Owns the waiting callers of webhooks and of the experience. In memory only: after a crash nobody waits any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

from trunkline.actors.values.errors import Overloaded


class Expected:
    """A caller who waits. `value` is None until the answer is there."""

    __slots__ = ("_event", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self._event = trio.Event()

    async def wait(self, timeout_s: float) -> Any:
        """The answer; None if there is none in time."""
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


class Replies:
    """The callers who wait. A component of the system."""

    def __init__(self) -> None:
        self._expected: dict[str, Expected] = {}
        self._waiting: dict[bytes, int] = {}

    @contextmanager
    def expect(self, id: str) -> Iterator[Expected]:
        """Expect an answer with this id while the body runs."""
        expected = self._expected[id] = Expected()
        try:
            yield expected
        finally:
            del self._expected[id]

    @contextmanager
    def expect_few(self, application: bytes, id: str, most: int) -> Iterator[Expected]:
        """The same for a call of which only `most` may wait in one application. Raises `Overloaded`."""
        waiting = self._waiting.get(application, 0)
        if waiting >= most:
            raise Overloaded(
                f"{waiting} calls of this application wait for workflows; try again in a second."
            )
        self._waiting[application] = waiting + 1
        try:
            with self.expect(id) as expected:
                yield expected
        finally:
            self._waiting[application] -= 1
            if not self._waiting[application]:
                del self._waiting[application]

    def is_expected(self, id: str) -> bool:
        """Whether a caller waits for `id`."""
        return id in self._expected

    def reply(self, id: str, value: Any) -> bool:
        """Answer the caller who waits for `id`. False if nobody waits, or the caller has an answer."""
        expected = self._expected.get(id)
        return expected is not None and expected.answer(value)
