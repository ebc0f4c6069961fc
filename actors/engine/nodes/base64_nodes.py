"""Base64EncodeNode and Base64DecodeNode: a text or an array of bytes becomes base64, and base64 becomes one of them.

Decoding reads both alphabets, with or without padding, and skips other characters. With `stringOutput` the bytes are
read as UTF-8, otherwise the result is an array of numbers.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from trunkline.actors.core.formulas.byte_texts import from_base64
from trunkline.actors.core.formulas.paths import ARRAY_ITEMS_MAX
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import Config, FlagSetting, PathSetting
from trunkline.actors.engine.tools import is_on, needed_path, shortened
from trunkline.actors.engine.visit import NodeStep, Visit, refused

_SOURCE: Final = PathSetting("source", is_needed=True)
_DESTINATION: Final = PathSetting("destination", is_needed=True)
_STRING_OUTPUT: Final = FlagSetting("stringOutput")


def _encode(config: Config) -> NodeStep:
    source, destination = needed_path(config, _SOURCE), needed_path(config, _DESTINATION)

    def step(visit: Visit) -> int:
        visit.put(destination, b64encode(_bytes_of(source.get(visit.payload))).decode())
        return 0

    return step


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, list):
        try:
            return bytes(value)
        except (ValueError, TypeError):
            pass
    raise refused(f"config.source: leads to {shortened(value)}, not to a text or an array of bytes.")


def _decode(config: Config) -> NodeStep:
    source, destination = needed_path(config, _SOURCE), needed_path(config, _DESTINATION)
    is_text = is_on(config, _STRING_OUTPUT)

    def step(visit: Visit) -> int:
        written = source.get(visit.payload)
        if not isinstance(written, str):
            raise refused(f"config.source: leads to {shortened(written)}, not to a text in base64.")
        content = from_base64(written)
        if not is_text and len(content) > ARRAY_ITEMS_MAX:
            raise refused(
                f"config.stringOutput: {len(content)} bytes are too many for an array, which has at most "
                f"{ARRAY_ITEMS_MAX} items; set it for a text."
            )
        visit.put(destination, content.decode("utf-8", "replace") if is_text else list(content))
        return 0

    return step


TYPES: Final[dict[str, NodeType]] = {
    "Base64EncodeNode": NodeType(_encode, Form("data", (_SOURCE, _DESTINATION))),
    "Base64DecodeNode": NodeType(_decode, Form("data", (_SOURCE, _DESTINATION, _STRING_OUTPUT))),
}
