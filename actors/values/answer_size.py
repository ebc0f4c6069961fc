"""The bound on the size of one answer."""

from __future__ import annotations

from trunkline.actors.values.errors import PayloadTooLarge

ANSWER_BYTES_MAX = 30_000_000
"""What one answer may hold, as for a time series: a thousand entries of a megabyte would be a gigabyte."""


class AnswerSize:
    """Keeps an answer within `ANSWER_BYTES_MAX`, so that a read costs bounded memory."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = ANSWER_BYTES_MAX

    def add(self, size: int) -> None:
        """Count bytes (or characters of text). Raises `PayloadTooLarge` past the bound."""
        self._left -= size
        if self._left < 0:
            raise PayloadTooLarge(
                f"The answer would be larger than {ANSWER_BYTES_MAX} bytes; "
                "ask for fewer entries at a time, or for a shorter range."
            )
