"""Bytes written as texts, by the names of encodings that Node.js has: utf8, hex, base64, base64url, latin1 and others.

Base64 is read as Node reads it: both alphabets, with or without padding, other characters skipped.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

_URL_DIGITS: Final = str.maketrans("-_", "+/")
_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NO_DIGITS: Final = bytes(set(range(256)) - set(_DIGITS))


def from_base64(text: str) -> bytes:
    """The bytes of a text in base64, up to the padding."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        pass  # it is not plain, or no base64
    digits = (
        text.partition("=")[0].translate(_URL_DIGITS).encode("ascii", "ignore").translate(None, _NO_DIGITS)
    )
    # A single digit at the end holds less than a byte.
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return base64.b64decode(digits + b"=" * (-len(digits) % 4))


def _from_hex(text: str) -> bytes:
    return binascii.unhexlify(text.strip())


def _to_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _latin1(text: str) -> bytes:
    return text.encode("latin-1", "replace")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


FROM_TEXT: Final[dict[str, Callable[[str], bytes]]] = {
    "utf8": _utf8,
    "utf-8": _utf8,
    "hex": _from_hex,
    "base64": from_base64,
    "base64url": from_base64,
    "latin1": _latin1,
    "binary": _latin1,
    "ascii": _latin1,
    "utf16le": _utf16,
    "ucs2": _utf16,
}
"""What makes bytes of a text, by encoding. Raises `ValueError` for a text that is not of the encoding."""

TO_TEXT: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": bytes.hex,
    "base64": lambda content: base64.b64encode(content).decode(),
    "base64url": _to_base64url,
    "latin1": lambda content: content.decode("latin-1"),
    "binary": lambda content: content.decode("latin-1"),
}
"""What makes a text of any bytes, by encoding."""
