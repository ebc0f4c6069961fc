"""CBOR for those that speak it to clients, the device link and MQTT: `http` does not import the store."""

from __future__ import annotations

import secrets
from typing import Any, Final

from trunkline.actors.core.values.nesting import NESTING_MAX
from trunkline.store.codec import DecodeError, Tag, encode, loads

__all__ = ["DEPTH_MAX", "NotOneItem", "Tag", "decode_item", "encode"]

DEPTH_MAX: Final = NESTING_MAX + 4
"""What clients send nests so deeply: `meta`, in the options, in the frame."""
_END: Final = secrets.token_bytes(16)
"""What follows an item while it is decoded: whatever else is found there belongs to the item."""
_END_ITEM: Final = b"\x50" + _END
_PAIR: Final = b"\x82"


class NotOneItem(Exception):
    """Bytes that are not one item of CBOR as clients may send it. The message says why."""


def decode_item(data: bytes) -> Any:
    """The item of CBOR that a client has sent: with tags of large numbers, and others as `Tag`. Raises `NotOneItem`."""
    try:
        pair = loads(
            b"".join((_PAIR, data, _END_ITEM)),
            max_depth=DEPTH_MAX,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
            semantic_decoders=_NO_TAGS,
        )
    except (DecodeError, ValueError, OverflowError) as error:
        cause = error.__cause__
        if isinstance(cause, UnicodeDecodeError):
            raise NotOneItem(f"a text in it is not UTF-8: {cause.reason}") from None
        raise NotOneItem(str(cause if isinstance(cause, _Tagged) else error)) from None
    if pair[1] != _END:
        raise NotOneItem("after the item there are more bytes")
    return pair[0]


class _Tagged(ValueError):
    """A tag that clients may not send."""


def _refuse_tag(*_args: object) -> Any:
    raise _Tagged("it has a tag other than those of numbers and typed arrays")


_NO_TAGS: Final = dict.fromkeys(
    (0, 1, 4, 5, 25, 28, 29, 30, 35, 36, 37, 100, 256, 258, 260, 261, 1004, 43000), _refuse_tag
)
"""Tags that the library knows. Those of shared values could make a small item endless."""
