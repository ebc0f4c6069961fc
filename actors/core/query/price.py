"""The price of a query: its conditions times the documents that it is matched with.

Owns what has been spent in a thread, and when somebody is asked whether to go on. Does not own who that is: the one who
reads (`core/records/read_time.py`). Where nobody is to be asked, matching costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LOOK_PRICE: Final = 1000
"""After so many conditions, which take about a third of a millisecond, the reader is asked."""
TEXT_PRICE: Final = 3
"""What a search in a text costs more than another condition."""
FOLDED_PRICE: Final = 8
"""What is added where case is ignored: the text is copied."""


class _Spent(threading.local):
    look: Callable[[], None] | None = None
    left: int = LOOK_PRICE


_SPENT = _Spent()


@contextmanager
def looked_at(look: Callable[[], None]) -> Iterator[None]:
    """Meanwhile call `look` in this thread each time that so much was spent. It may raise to end the work."""
    before, _SPENT.look = _SPENT.look, look
    _SPENT.left = LOOK_PRICE
    try:
        yield
    finally:
        _SPENT.look = before


def spend(price: int) -> None:
    """Pay for what is matched next."""
    spent = _SPENT
    if spent.look is not None:
        spent.left -= price
        if spent.left < 0:
            spent.left = LOOK_PRICE
            spent.look()
