"""What is added to a queue for applications that are being moved.

While an application leaves, what is added for it is ignored: it is in the store, where the other process finds it.
While it comes, it waits until the work for it begins.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class HeldBack(Generic[T]):
    """By application what waits; None while it is ignored. False if no application is being moved."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[bytes, list[T] | None] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ignore(self, application: bytes) -> None:
        """Ignore what is added for an application from now on."""
        self._waiting[application] = None

    def keep(self, application: bytes) -> None:
        """Keep what is added for an application from now on."""
        self._waiting[application] = []

    def release(self, application: bytes) -> list[T]:
        """Hold nothing back any more. Returns what waits."""
        return self._waiting.pop(application, None) or []

    def takes(self, application: bytes, added: T) -> bool:
        """Whether what is added is held back, or ignored."""
        if application not in self._waiting:
            return False
        waiting = self._waiting[application]
        if waiting is not None:
            waiting.append(added)
        return True
