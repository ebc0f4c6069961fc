"""What workflows and pages see of a request: its query, cookies, headers and body as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

from trunkline.actors.core.formulas.byte_texts import codec_of, shown
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.http.calls.errors import UnsupportedMediaType
from trunkline.http.calls.json_problem import json_problem
from trunkline.http.wire.headers import Headers

_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_BINARY: Final = frozenset({"image", "audio", "video"})


class Bytes(NamedTuple):
    """How bytes are given to workflows.

    With `cast` (`castBuffersAs` of webhooks), binary bodies and the contents of files of a form are as it says, and a
    file is its content alone unless `annotates`. Without it, files are objects with base64, and other bodies texts.
    """

    cast: str | None = None
    annotates: bool = False


PLAIN: Final = Bytes()


def headers_of(headers: Headers) -> dict[str, str]:
    """The headers by name in lower case, but for cookies. Repeated ones are joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin1").lower(), raw_value.decode("latin1")
        if name != "cookie":
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def cookies_of(headers: Headers) -> dict[str, str]:
    """The cookies by name, percent-decoded; of several with one name the first, which has the longest path."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name == b"cookie":
            for pair in value.decode("latin1").split(";"):
                key, equals, text = pair.strip().partition("=")
                if equals and key:
                    found.setdefault(key, unquote(text.strip('"')))
    return found


def values_of(query: str, codec: str = "utf-8") -> dict[str, str | list[str]]:
    """The values of a query or a form by name; an array for a name that is repeated. Raises `Invalid`."""
    try:
        return _gathered(parse_qsl(query, keep_blank_values=True, encoding=codec, max_num_fields=1000))
    except ValueError:
        raise Invalid("The query or the form has more than 1000 fields.") from None


def body_of(headers: Mapping[str, str], body: bytes, parts_max: int, given: Bytes = PLAIN) -> Any:
    """The body: what JSON or a form says, otherwise its text; None if it is empty.

    Raises `Invalid`, and `UnsupportedMediaType` for a body that is compressed, unless it is given as bytes, and for a
    charset that is not known.
    """
    if not body:
        return None
    content_type = headers.get("content-type", "")
    kind, options = parse_options_header(content_type)
    kind = kind.lower()
    if given.cast is not None and _is_binary(kind):
        return shown(body, given.cast)
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMediaType(
            f"Content-Encoding: {encoding[:100]!r} is not taken; send the body as it is."
        )
    if kind == "application/json" or kind.endswith("+json"):
        try:
            codec = _codec(content_type)
            return msgspec.json.decode(body if codec == "utf-8" else body.decode(codec))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Invalid(f"The body is not valid JSON: {json_problem(error, body)}.") from None
    if kind == _FORM:
        return values_of(text_of(content_type, body), _codec(content_type))
    if kind == _MULTIPART:
        return _parts(options.get("boundary", ""), body, parts_max, given)
    return text_of(content_type, body)


def text_of(content_type: str, body: bytes) -> str:
    """The text of a body; bytes that are none become U+FFFD. Raises `UnsupportedMediaType`."""
    return body.decode(_codec(content_type), "replace")


def _codec(content_type: str) -> str:
    codec = codec_of(content_type)
    if codec is None:
        raise UnsupportedMediaType(
            f"Content-Type: {content_type[:100]!r} names a charset that is not known; send the text as utf-8."
        )
    return codec


def _is_binary(kind: str) -> bool:
    return kind == "application/octet-stream" or (
        kind.partition("/")[0] in _BINARY and not kind.endswith("+xml")
    )


def _gathered(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated: set[str] = set()
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif name in repeated:
            found[name].append(value)
        else:  # the first value may be an array itself: the bytes of a file
            repeated.add(name)
            found[name] = [found[name], value]
    return found


def _parts(boundary: str, body: bytes, parts_max: int, given: Bytes) -> dict[str, Any]:
    """The parts of a form by name."""
    if not 0 < len(boundary) <= 70 or not boundary.isascii():
        raise Invalid("Content-Type: needs a boundary of 1 to 70 ASCII characters.")
    decoder = MultipartDecoder(boundary.encode())
    decoder.receive_data(body)
    decoder.receive_data(None)
    found: list[tuple[str, Any]] = []
    part: Field | File | None = None
    data = bytearray()
    try:
        while not isinstance(event := decoder.next_event(), Epilogue | NeedData):
            if isinstance(event, Field | File):
                part, data = event, bytearray()
            elif isinstance(event, Data) and part is not None:
                data += event.data
                if not event.more_data:
                    found.append((part.name or "", _value_of(part, bytes(data), given)))
                    if len(found) > parts_max:
                        raise PayloadTooLarge(f"The form has more than {parts_max} parts.")
    except ValueError:
        raise Invalid("The form is malformed, or ended before it was complete.") from None
    return _gathered(found)


def _value_of(part: Field | File, data: bytes, given: Bytes) -> Any:
    if isinstance(part, Field):
        return text_of(part.headers.get("content-type", ""), data)
    content = shown(data, given.cast or "base64")
    if given.cast is not None and not given.annotates:
        return content
    return {
        "fileName": part.filename,
        "contentType": part.headers.get("content-type"),
        "data": content,
    }
