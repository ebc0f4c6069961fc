"""The commands of a device that wait for its acknowledgement: one small value of the device in TIMELINE.

Owns what waits, in the order of the commands, and its form on the disk: one flat list, as it is written with each
command of a device that has a link. A device that never used a link, and got no command with a time to live, has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trunkline.store.codec import decode, encode


class Due(NamedTuple):
    """A command that waits: when it arrived, when it expires (0: never), and whether a link was given it."""

    time_ms: int
    expires_ms: int
    is_sent: bool


class Waiting:
    """What waits, by the number of the command.

    `since_ms` is when the device opened its first link, 0 for never. `gateway` is that under which the device is noted
    as a peripheral with waiting commands, empty if it is not.
    """

    __slots__ = ("commands", "gateway", "since_ms")

    def __init__(self, raw: bytes | None = None) -> None:
        self.since_ms = 0
        self.gateway = b""
        self.commands: dict[int, Due] = {}
        if raw is not None:
            self.since_ms, self.gateway, *flat = decode(raw)
            for at in range(0, len(flat), 4):
                number, time_ms, expires_ms, is_sent = flat[at : at + 4]
                self.commands[number] = Due(time_ms, expires_ms, bool(is_sent))

    def expired(self, now_ms: int) -> list[int]:
        """The numbers of the commands whose time to live has ended."""
        return [number for number, due in self.commands.items() if 0 < due.expires_ms <= now_ms]

    def after(self, number: int) -> Iterator[tuple[int, Due]]:
        """The commands behind `number`, in order."""
        return ((each, due) for each, due in self.commands.items() if each > number)

    def encoded(self) -> bytes | None:
        """The bytes to store; None if there is nothing to store."""
        if not self.since_ms and not self.commands:
            return None
        flat: list[Any] = [self.since_ms, self.gateway]
        for number, due in self.commands.items():
            flat += (number, due.time_ms, due.expires_ms, int(due.is_sent))
        return encode(flat)
