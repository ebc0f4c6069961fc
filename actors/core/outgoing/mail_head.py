"""The lines of a mail's head, written so that no text in them can be read as another line.

The standard library decodes encoded words (RFC 2047) in the values that it is given, and writes what they hold, line
breaks too. Here a value is a text and nothing else: what is not short printable ASCII, or looks like an encoded word,
is encoded as a whole, so a reader decodes it once and gets the text. Owns the addresses that a mail can have as well.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from email.errors import HeaderParseError
from email.headerregistry import Address
from typing import Final

from trunkline.actors.core.values.errors import Invalid

_LINE_LENGTH: Final = 76
_WORD_BYTES: Final = 42
"""Bytes of a text in one encoded word, which may have 75 characters and stands behind the name of its line."""
_ADDRESS_LENGTH_MAX: Final = 254
"""RFC 5321 permits 256 with the angle brackets."""


def head(lines: Iterable[tuple[str, str]]) -> bytes:
    """Lines with names of ours and values that may be anything. Line breaks in values become spaces."""
    return b"".join(f"{name}: {_value(name, text)}\r\n".encode() for name, text in lines)


def is_address(text: str) -> bool:
    """Whether a message can be sent to `text`: one address without a name, a comment or an encoded word."""
    if (
        len(text) > _ADDRESS_LENGTH_MAX
        or "=?" in text
        or not text.isprintable()
        or set(" ()<>,;") & set(text)
    ):
        return False
    try:
        Address(addr_spec=text)
    except (ValueError, IndexError, HeaderParseError):
        return False
    return True


def check_address(text: str, field: str = "email") -> None:
    """Raise `Invalid` if `text` is not an address that a message can be sent to."""
    if not is_address(text):
        raise Invalid(
            f"{field}: is not an address that a message can be sent to, such as somebody@example.com."
        )


def _value(name: str, text: str) -> str:
    line = " ".join("".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in text).split())
    if line.isascii() and "=?" not in line and len(name) + 2 + len(line) <= _LINE_LENGTH:
        return line
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(word).decode()}?=" for word in _words(line))


_JOINERS: Final = "\u200c\u200d"
"""They join the signs of some scripts and pictures, and are not printable alone."""


def _words(line: str) -> Iterator[bytes]:
    """The text in pieces of whole characters."""
    word = b""
    for sign in line:
        more = sign.encode("utf-8", "replace")
        if len(word) + len(more) > _WORD_BYTES:
            yield word
            word = b""
        word += more
    yield word
