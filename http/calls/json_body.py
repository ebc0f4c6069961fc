"""The JSON body of a request: checks and decoding.

What decoding costs depends on the number of values more than on the bytes: an array of empty objects takes ten times
as long as a text of the same size. So the values are counted first, which takes a thousandth of that. A few are decoded
in the loop, many in a thread, and too many not at all.

Decoding keeps the interpreter until it has ended. So there is one thread for it, in which owners take turns, and
between two bodies the event loop goes first.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import Any, Final

import msgspec
import trio

from trunkline.actors.core.formulas.json_values import count_values, values_at_most
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.precedence import give_way
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.invalid_input import UNKNOWN, empty, invalid
from trunkline.http.calls.errors import UnsupportedMediaType
from trunkline.http.calls.json_problem import json_problem
from trunkline.http.calls.late_decoder import Decoder, LateDecoder
from trunkline.http.calls.request import Request

PLAIN_BYTES_MAX: Final = 16_384
PLAIN_VALUES_MAX: Final = 1_000
"""The values of a body that has more of both are not told in the sentence about what is wrong with it."""

LONG_BYTES_MIN: Final = 262_144
"""The values of a body that has more are not told either: to read it again takes a millisecond."""

INLINE_VALUES_MAX: Final = 10_000
"""Bodies with more values are not decoded in the event loop: 2 ms of states, 5 ms of the worst."""
_COUNTED_BYTES_MIN: Final = 32_768
"""A shorter body is never long work."""
_WAITING_MAX: Final = 256
"""Bodies that wait to be decoded. If it is full, one of the owner with the most is refused."""
_TURNS: trio.lowlevel.RunVar[OwnerShares] = trio.lowlevel.RunVar("long_bodies")


def is_long_work(body: bytes) -> bool:
    """Whether decoding a body takes longer than a turn of the loop may."""
    return len(body) > _COUNTED_BYTES_MIN and values_at_most(body) > INLINE_VALUES_MAX


async def decode_beside(decoder: Decoder | LateDecoder, body: bytes, values_max: int, owner: Hashable) -> Any:
    """Decode a body that is long work, in a thread, charged to `owner`.

    Raises as `decode`, `PayloadTooLarge` for too many values, and `Overloaded` if too many bodies wait.
    """
    return await turns().compute(owner, partial(_decode_long, decoder, body, values_max))


def turns() -> OwnerShares:
    """Who decodes a long body next, in this run of Trio."""
    try:
        return _TURNS.get()
    except LookupError:
        shares = OwnerShares("long bodies", 1, _WAITING_MAX)
        _TURNS.set(shares)
        return shares


def _decode_long(decoder: Decoder | LateDecoder, body: bytes, values_max: int) -> Any:
    give_way()
    if values_at_most(body) > values_max and (count := count_values(body)) > values_max:
        raise PayloadTooLarge(
            f"The body has {count} values; a call takes at most {values_max}. Send several calls."
        )
    give_way()
    return decode(decoder, body)


def check(request: Request, bytes_max: int) -> None:
    """Raise if the body is too large (413), or its content type is not JSON or it is compressed (415)."""
    if len(request.body) > bytes_max:
        raise PayloadTooLarge(f"The body has {len(request.body)} bytes; a call takes at most {bytes_max}.")
    content_type = request.headers.get(b"content-type", b"")
    if (
        content_type != b"application/json"
        and content_type.partition(b";")[0].strip().lower() != b"application/json"
    ):
        shown = repr(content_type[:100].decode("latin1")) if content_type else "no content type"
        raise UnsupportedMediaType(f"The body must be JSON (Content-Type: application/json); got {shown}.")
    encoding = request.headers.get(b"content-encoding", b"identity")
    if encoding.strip().lower() != b"identity":
        shown = repr(encoding[:100].decode("latin1"))
        raise UnsupportedMediaType(f"Content-Encoding: {shown} is not taken; send the body as it is.")


def check_none(body: bytes) -> None:
    """Raise Invalid if there is anything in the body of a call that takes none, and would not look at it."""
    if body.strip() not in (b"", b"{}", b"null"):
        raise Invalid("The body: this operation takes none, and would not look at it; leave it out.")


def decode(decoder: Decoder | LateDecoder, body: bytes) -> Any:
    """Return the typed body. Malformed JSON is 400 with its position, a wrong value is 400."""
    if not body:
        raise empty(decoder.type)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid(error, "body", decoder.type, _plain_value(body)) from None
    except UnicodeDecodeError as error:
        raise Invalid(f"The body is not UTF-8: {error.reason} 0x{error.object[error.start]:02x}.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        problem = json_problem(error, body)
        place = "" if "byte" in problem else f" (byte {len(body)})"
        raise Invalid(f"The body is not JSON: {problem}{place}.") from None


def _plain_value(body: bytes) -> Any:
    """The value of a body whatever its type; unknown where the rest of it is not JSON, and where it is long.

    A long body may have a hundred thousand values, and a refusal must not cost more than the call. A number that is
    out of range is an infinity.
    """
    if len(body) > LONG_BYTES_MIN or (
        len(body) > PLAIN_BYTES_MAX and values_at_most(body) > PLAIN_VALUES_MAX
    ):
        return UNKNOWN
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return UNKNOWN
