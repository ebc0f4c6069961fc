"""The context of a read: its snapshot, the limits, and where it runs.

A read is a plain function of a `Reading` and a message. It is first called in the event loop. If it finds that it
would take long, it calls `check_time`; then it is called again in a worker thread, on a snapshot of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.values.answer_size import AnswerSize

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.host import Host
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot

SCAN_INLINE_MAX = 256
"""Records that a read may scan inside the event loop: about a millisecond. More go to a worker thread."""

INLINE_BYTES_MAX = 256 * 1024
"""Stored bytes that a read may decode inside the event loop: about a millisecond. More go to a worker thread."""


class TakesLong(Exception):
    """The read takes too long for the event loop and must run in a worker thread."""


class Reading:
    """The context of a read: the snapshot, the limits of the server, and the server itself where there is one."""

    __slots__ = ("_in_loop", "limits", "snapshot", "system")

    def __init__(
        self, snapshot: Snapshot, limits: Limits, *, in_loop: bool, system: Host | None = None
    ) -> None:
        self.snapshot = snapshot
        self.limits = limits
        self.system = system
        self._in_loop = in_loop

    def answer_size(self) -> AnswerSize:
        """A counter of the bytes of the answer, with the limit of the server."""
        return AnswerSize(self.limits.answer_bytes_max)

    def check_time(self, *, is_long: bool) -> None:
        """Declare whether the rest of the read takes long. Raises `TakesLong` if so and it runs in the event loop."""
        if is_long and self._in_loop:
            raise TakesLong
