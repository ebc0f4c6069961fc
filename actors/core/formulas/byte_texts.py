"""Bytes written as texts, by the names of encodings that Node.js has: utf8, hex, base64, base64url, latin1 and others.

Base64 is read as Node reads it: both alphabets, with or without padding, other characters skipped. Long texts and bytes
are converted in pieces (`long_texts.py`), and charged.
"""

from __future__ import annotations

import base64
import binascii
from codecs import getincrementaldecoder, lookup
from collections.abc import Callable
from typing import Final

from trunkline.actors.core.formulas.long_texts import bytes_in_pieces, in_pieces, text_in_pieces, to_base64

_URL_DIGITS: Final = bytes.maketrans(b"-_", b"+/")
_DIGITS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NO_DIGITS: Final = bytes(set(range(256)) - set(_DIGITS + b"-_"))


def from_base64(text: str) -> bytes:
    """The bytes of a text in base64, up to the padding."""
    end = text.find("=")
    if end < 0 or end >= len(text) - 2:
        try:
            return bytes_in_pieces(lambda piece: base64.b64decode(piece, validate=True), text)
        except ValueError:
            pass  # it is not plain, or no base64
    digits = bytes_in_pieces(_digits_of, text if end < 0 else text[:end])
    # A single digit at the end holds less than a byte.
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    plain = digits.decode("ascii") + "=" * (-len(digits) % 4)
    return bytes_in_pieces(base64.b64decode, plain)


def _digits_of(piece: str) -> bytes:
    return piece.encode("ascii", "ignore").translate(_URL_DIGITS, _NO_DIGITS)


def _from_hex(text: str) -> bytes:
    return bytes_in_pieces(binascii.unhexlify, text.strip())


def _to_base64url(content: bytes) -> str:
    plain = to_base64(content).rstrip("=")
    return in_pieces(lambda piece: piece.replace("+", "-").replace("/", "_"), plain)


def _encoder(codec: str) -> Callable[[str], bytes]:
    """What makes bytes of a text; a character that has none becomes a question mark."""
    return lambda text: bytes_in_pieces(lambda piece: piece.encode(codec, "replace"), text)


def decoded(content: bytes, codec: str) -> str:
    """The text of bytes; those that are none become U+FFFD."""
    decoder = getincrementaldecoder(codec)("replace")
    text = text_in_pieces(decoder.decode, content)
    return text + decoder.decode(b"", final=True)


_CODECS: Final = frozenset(
    {
        *("ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
        *(f"iso8859-{number}" for number in range(1, 17)),
        *(f"cp{number}" for number in (437, 850, 852, 866, 874, 932, 949, 950, *range(1250, 1259))),
        *("koi8-r", "koi8-u", "mac-roman", "tis-620"),
        *("shift_jis", "euc_jp", "iso2022_jp", "euc_kr", "gb2312", "gbk", "gb18030", "big5"),
    }
)
"""Codecs of Python that are charsets of texts, in a time linear in the bytes."""


def codec_of(content_type: str) -> str | None:
    """The codec for the charset of a `Content-Type`, utf-8 if it says none; None for one that is not known."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            try:
                codec = lookup(value.strip().strip("\"'")[:40]).name
            except (LookupError, ValueError):
                return None
            return codec if codec in _CODECS else None
    return "utf-8"


FROM_TEXT: Final[dict[str, Callable[[str], bytes]]] = {
    "utf8": _encoder("utf-8"),
    "utf-8": _encoder("utf-8"),
    "hex": _from_hex,
    "base64": from_base64,
    "base64url": from_base64,
    "latin1": _encoder("latin-1"),
    "binary": _encoder("latin-1"),
    "ascii": _encoder("latin-1"),
    "utf16le": _encoder("utf-16-le"),
    "ucs2": _encoder("utf-16-le"),
}
"""What makes bytes of a text, by encoding. Raises `ValueError` for a text that is not of the encoding."""

TO_TEXT: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": lambda content: text_in_pieces(bytes.hex, content),
    "base64": to_base64,
    "base64url": _to_base64url,
    "latin1": lambda content: content.decode("latin-1"),
    "binary": lambda content: content.decode("latin-1"),
}
"""What makes a text of any bytes, by encoding."""


def shown(content: bytes, cast: str) -> str | list[int]:
    """Bytes as `castBuffersAs` says: a text in that encoding, or a number for each byte (`array`)."""
    if cast == "array":
        return list(content)
    return decoded(content, "utf-8") if cast == "utf8" else TO_TEXT[cast](content)
