"""A group: the batches that are committed together, and who waits for that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog
import trio

from trunkline.store.errors import StoreError

_log = structlog.get_logger("trunkline.store")


class Group:
    """The batches that are committed together. Once `done`, `error` is None if they are on disk."""

    __slots__ = ("_callbacks", "_event", "_watchers", "done", "error")

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._watchers: list[Callable[[StoreError | None], None]] = []
        self._event = trio.Event()
        self.done = False
        self.error: StoreError | None = None

    async def wait(self) -> None:
        """Return when the group is synced to disk. Raises StoreFull or StoreBroken if it was not stored.

        If the caller is cancelled, the group is committed nevertheless.
        """
        await self._event.wait()
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error

    def then(self, callback: Callable[[], None]) -> None:
        """Call `callback` right after the commit, in the order of these calls and before any waiter resumes.

        Never called if the commit failed; called at once if it is done already. An exception of the callback is
        logged and not passed on.
        """
        self._callbacks.append(callback)
        if self.done:
            self.finish(self.error)

    def settled(self, watcher: Callable[[StoreError | None], None]) -> None:
        """Call `watcher` with the error of the commit, or None, after all callbacks of `then`.

        Only for a group that is not done. An exception of the watcher is logged and not passed on.
        """
        self._watchers.append(watcher)

    def finish(self, error: StoreError | None) -> None:
        """Complete the group. Only the journal calls this."""
        self.done = True
        self.error = error
        callbacks, self._callbacks = self._callbacks, []
        watchers, self._watchers = self._watchers, []
        try:
            for call in [*(callbacks if error is None else ()), *(partial(each, error) for each in watchers)]:
                try:
                    call()
                except Exception:  # noqa: BLE001 - the callback of one actor must not end the committer
                    _log.exception("a callback after a commit failed")
        finally:
            self._event.set()
