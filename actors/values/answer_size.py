"""The limit on the size of one answer."""

from __future__ import annotations

from trunkline.actors.values.errors import PayloadTooLarge

ANSWER_BYTES_MAX = 30_000_000
"""The largest answer. Without it, a page of a thousand entries of a megabyte each would be a gigabyte."""


class AnswerSize:
    """Counts the size of an answer up to `ANSWER_BYTES_MAX`, so that the memory of a read is bounded."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX

    def add(self, size: int) -> None:
        """Add bytes (or characters of text). Raises `PayloadTooLarge` above the limit."""
        self._left -= size
        if self._left < 0:
            raise PayloadTooLarge(
                f"The answer would be larger than {ANSWER_BYTES_MAX} bytes; "
                "ask for fewer entries at a time, or for a shorter range."
            )
