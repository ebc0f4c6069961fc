"""The size of one answer, counted while it grows."""

from __future__ import annotations

from trunkline.actors.core.values.errors import PayloadTooLarge


class AnswerSize:
    """Counts the size of an answer up to a limit, so that the memory of a read is bounded."""

    __slots__ = ("_bytes_max", "_left")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._left = bytes_max

    def add(self, size: int) -> None:
        """Add bytes (or characters of text). Raises `PayloadTooLarge` above the limit."""
        self._left -= size
        if self._left < 0:
            raise PayloadTooLarge(
                f"The answer would be larger than {self._bytes_max} bytes; "
                "ask for fewer entries at a time, or for a shorter range."
            )
