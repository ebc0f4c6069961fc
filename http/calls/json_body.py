"""The JSON body of a request: checks and decoding."""

from __future__ import annotations

from typing import Any

import msgspec

from trunkline.actors.values.errors import Invalid, PayloadTooLarge
from trunkline.http.calls.errors import UnsupportedMediaType
from trunkline.http.calls.invalid_input import UNKNOWN, empty, invalid, type_of_body
from trunkline.http.calls.request import Request


def check(request: Request, bytes_max: int) -> None:
    """Raise if the body is too large (413) or its content type is not JSON (415)."""
    if len(request.body) > bytes_max:
        raise PayloadTooLarge(f"The body has {len(request.body)} bytes; a call takes at most {bytes_max}.")
    content_type = request.headers.get(b"content-type", b"")
    if (
        content_type != b"application/json"
        and content_type.partition(b";")[0].strip().lower() != b"application/json"
    ):
        shown = repr(content_type[:100].decode("latin1")) if content_type else "no content type"
        raise UnsupportedMediaType(f"The body must be JSON (Content-Type: application/json); got {shown}.")


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Return the typed body. Malformed JSON is 400 with its position, a wrong value is 400."""
    if not body:
        raise empty(type_of_body(decoder))
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid(error, "body", type_of_body(decoder), _plain_value(body)) from None
    except UnicodeDecodeError as error:
        raise Invalid(f"The body is not UTF-8: {error.reason} 0x{error.object[error.start]:02x}.") from None
    except (msgspec.DecodeError, RecursionError) as error:
        place = "" if "byte" in str(error) else f" (byte {len(body)})"
        raise Invalid(f"The body is not JSON: {error}{place}.") from None


def _plain_value(body: bytes) -> Any:
    """The value of a body whatever its type; unknown where the rest of it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return UNKNOWN
