"""What functions of C do with texts, in pieces: none of them keeps other threads waiting for more than a millisecond.

A thread that computes shares the interpreter with the event loop, and a single call into C is not interrupted. Each
function gives what the one of Python gives, and charges the work at hand (`price.py`). A text that fits into one piece
is not taken apart.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Final

from trunkline.actors.core.formulas.price import CHARACTERS_A_STEP, spend

PIECE_CHARS: Final = 16_384
"""Characters that one call of C goes through."""
JOINED_PARTS: Final = 4_096
"""Texts that one call of C joins."""

_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;"}
)
_ESCAPED: Final = re.compile("[&<>\"'`=]").search


def in_pieces(change: Callable[[str], str], text: str, piece_chars: int = PIECE_CHARS) -> str:
    """A text whose pieces are changed, one after the other. `change` must not depend on where a text is cut."""
    if len(text) <= piece_chars:
        spend(len(text) // CHARACTERS_A_STEP)
        return change(text)
    pieces = []
    for start in range(0, len(text), piece_chars):
        spend(piece_chars // CHARACTERS_A_STEP)
        pieces.append(change(text[start : start + piece_chars]))
    return "".join(pieces)


def bytes_in_pieces(change: Callable[[str], bytes], text: str) -> bytes:
    """The bytes that are made of the pieces of a text, whose length is a multiple of four."""
    if len(text) <= PIECE_CHARS:
        spend(len(text) // CHARACTERS_A_STEP)
        return change(text)
    pieces = []
    for start in range(0, len(text), PIECE_CHARS):
        spend(PIECE_CHARS // CHARACTERS_A_STEP)
        pieces.append(change(text[start : start + PIECE_CHARS]))
    return b"".join(pieces)


def text_in_pieces(change: Callable[[bytes], str], content: bytes) -> str:
    """The text that is made of the pieces of bytes."""
    if len(content) <= PIECE_CHARS:
        spend(len(content) // CHARACTERS_A_STEP)
        return change(content)
    pieces = []
    for start in range(0, len(content), PIECE_CHARS):
        spend(PIECE_CHARS // CHARACTERS_A_STEP)
        pieces.append(change(content[start : start + PIECE_CHARS]))
    return "".join(pieces)


def joined(parts: Sequence[str], between: str = "") -> str:
    """`between.join(parts)`."""
    if len(parts) <= JOINED_PARTS:
        return between.join(parts)
    groups = []
    for start in range(0, len(parts), JOINED_PARTS):
        spend(JOINED_PARTS // 64)
        groups.append(between.join(parts[start : start + JOINED_PARTS]))
    return between.join(groups)


def escaped(text: str) -> str:
    """A text for HTML."""
    if len(text) <= PIECE_CHARS:
        if _ESCAPED(text) is None:
            return text
        spend(len(text) // 32)
        return text.translate(_ESCAPES)
    return in_pieces(escaped, text)


def lowered(text: str) -> str:
    """`text.lower()`. A final sigma is looked for in each piece."""
    return in_pieces(str.lower, text)


def uppered(text: str) -> str:
    """`text.upper()`."""
    return in_pieces(str.upper, text)


def stripped(text: str, characters: str, *, start: bool = True, end: bool = True) -> str:
    """`text.strip(characters)`, or of one end only."""
    first, last = 0, len(text)
    while start and first < last:
        spend(1)
        piece = text[first : first + PIECE_CHARS]
        rest = piece.lstrip(characters)
        first += len(piece) - len(rest)
        if rest:
            break
    while end and first < last:
        spend(1)
        piece = text[max(first, last - PIECE_CHARS) : last]
        rest = piece.rstrip(characters)
        last -= len(piece) - len(rest)
        if rest:
            break
    return text[first:last]


def contains(text: str, wanted: str) -> bool:
    """`wanted in text`."""
    if len(text) <= 4 * PIECE_CHARS or len(wanted) > len(text):
        spend(len(text) // CHARACTERS_A_STEP)
        return wanted in text
    step = 4 * PIECE_CHARS
    for start in range(0, len(text) - len(wanted) + 1, step):
        spend((step + len(wanted)) // CHARACTERS_A_STEP)
        if wanted in text[start : start + step + len(wanted) - 1]:
            return True
    return False


def to_base64(content: bytes) -> str:
    """Bytes in base64."""
    size = 3 * PIECE_CHARS
    pieces = []
    for start in range(0, len(content), size):
        spend(size // CHARACTERS_A_STEP)
        pieces.append(base64.b64encode(content[start : start + size]).decode("ascii"))
    return "".join(pieces)
