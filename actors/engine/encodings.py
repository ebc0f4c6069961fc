"""The encodings that nodes name: how bytes are written as a text. utf8 if none is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trunkline.actors.core.formulas.byte_texts import FROM_TEXT, TO_TEXT, decoded
from trunkline.actors.engine.visit import refused

_CODECS: Final = {
    "utf8": "utf-8",
    "utf-8": "utf-8",
    "ascii": "ascii",
    "utf16le": "utf-16-le",
    "ucs2": "utf-16-le",
}
"""Those that not all bytes are a text of; the others are in `TO_TEXT`."""


def bytes_written(text: str, encoding: str, field: str) -> bytes:
    """The bytes that a text stands for. `field` is that of the text, in errors. Raises `NodeError`."""
    name = _named(encoding)
    try:
        return FROM_TEXT[name](text)
    except ValueError:
        raise refused(f"{field}: gives a text that is not written as {name}.") from None


def text_writer(encoding: str) -> Callable[[bytes], str]:
    """What writes bytes as a text. Raises `NodeError` for an encoding that is none."""
    name = _named(encoding)
    codec = _CODECS.get(name)
    return TO_TEXT[name] if codec is None else lambda content: decoded(content, codec)


def is_utf8(encoding: str) -> bool:
    """Whether bytes that a text of this encoding stands for are the text itself."""
    return _named(encoding) in ("utf8", "utf-8")


def shows_bytes(encoding: str) -> bool:
    """Whether a text of this encoding shows bytes, so that it is never JSON."""
    return _named(encoding) in ("hex", "base64", "base64url")


def _named(encoding: str) -> str:
    name = encoding.strip().lower() or "utf8"
    if name not in FROM_TEXT:
        raise refused(f"The encoding is {encoding[:100]!r}; give one of {', '.join(FROM_TEXT)}.")
    return name
