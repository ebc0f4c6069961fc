"""What the event loop works on now, and for whom: a marker for those who ask why a turn took so long.

Whoever begins work sets it. In a task that is `current_work`, which holds as long as the task does, and in those that
it starts. In a callback, which has no task of its own, it is `noted`, which holds to the end of the turn. Setting one
costs some ten nanoseconds, because the marker is made once for what is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple


class Work(NamedTuple):
    """Some work. `kind` is one of `KINDS`, `name` an operation, or what else says what is done.

    `payer` is the user or organization who is charged for it if it is for no application (`core/records/owners.py`).
    `bearer` is the token with which it was asked for, as its kind and id. `detail` is called after a long turn, for
    what is known only then; it returns plain words, or an empty text.
    """

    kind: str
    name: str
    application: bytes | None = None
    bearer: str | None = None
    detail: Callable[[], str] | None = None
    payer: bytes | None = None


KINDS = ("call", "link", "run", "job", "commit", "other")
"""`other` is work that has no marker: it is known by the name of its task."""


class Noted:
    """The work of the callback that runs now; None where it has not said."""

    __slots__ = ("work",)

    def __init__(self) -> None:
        self.work: Work | None = None


noted = Noted()

current_work: ContextVar[Work | None] = ContextVar("current_work", default=None)
"""The work of a task."""


def begin(work: Work) -> None:
    """The task begins this work, in a turn in which it may have ended other work."""
    current_work.set(work)
    noted.work = None


def end() -> None:
    """The work of the task is over, but the turn is not: it counts for this work, and nothing keeps it longer."""
    noted.work = current_work.get()
    current_work.set(None)


def is_for(application: bytes) -> None:
    """The work of the task turns out to be for this application, who pays for it from now on."""
    work = current_work.get()
    current_work.set(
        Work("other", "", application) if work is None else work._replace(application=application)
    )
