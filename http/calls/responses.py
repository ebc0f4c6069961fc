"""The response to a call that succeeded: its headers, its JSON, its entity tag and its links."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trunkline.actors.core.records.revision import WithEtag, answer_etag
from trunkline.actors.core.values.structs import Created, Renamed
from trunkline.http.calls.call import Call
from trunkline.http.calls.entity_tag import tag_matches
from trunkline.http.calls.errors import JSON, rate_limit
from trunkline.http.calls.links import add_links
from trunkline.http.calls.request import Headers, Response
from trunkline.http.calls.route import Route
from trunkline.limits.window import Verdict

SUCCESS: Final = b'{"success":true}'
_JSON_ONLY: Final = (JSON,)


def take_ids(call: Call, value: Any) -> dict[str, str]:
    """Note the id or the name that an actor's answer gives, and return what is shown only in this answer."""
    if isinstance(value, Created):
        assert call.route.created_id is not None
        call.ids = {**call.ids, call.route.created_id: value.id}
        return value.shown_once
    if isinstance(value, Renamed):
        call.ids = {**call.ids, "name": value.name}
    return {}


def response_to(call: Call, value: Any, verdict: Verdict | None) -> Response:
    """The response with an actor's answer, or with what was read after it; or only success."""
    route = call.route
    headers = [*response_headers(route, verdict)]
    if route.answer_is_reply or route.then is not None:
        return json_response(call, route.ok, value, headers)
    return Response(route.ok, headers, SUCCESS)


def response_headers(route: Route, verdict: Verdict | None) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of the response to an actor's answer; with those of the throttle, if one applied."""
    if verdict is None:
        return _JSON_ONLY
    assert route.throttle is not None
    return JSON, *rate_limit(route.throttle, verdict)


def json_response(
    call: Call, status: int, value: Any, headers: Headers | None = None, *, in_pieces: bool = False
) -> Response:
    """The JSON response of a value: with links if requested; if the value is a record, with `ETag`, or as 304.

    `in_pieces` is for threads: the event loop waits for the interpreter while one piece is encoded.
    """
    headers = [JSON] if headers is None else headers
    etag = revision = None
    if type(value) is WithEtag:
        value, etag = value.value, value.etag
    elif isinstance(value, dict) and "_type" in value:
        revision = value.get("_etag")
        if call.with_links:
            add_links(value, call.route.links)
    body = encoded_in_pieces(value) if in_pieces else msgspec.json.encode(value)
    if revision is not None:
        etag = answer_etag(revision, body)
    if etag is not None:
        headers.append((b"etag", f'"{etag}"'.encode()))
        if call.route.method == "GET" and tag_matches(call.request.header(b"if-none-match"), etag):
            return Response(304, headers)
    return Response(status, headers, body)


def encoded_in_pieces(value: Any) -> bytes:
    """The JSON of a value; that of a list item by item."""
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        items = b",".join([msgspec.json.encode(item) for item in value["items"]])
        value = {**value, "items": msgspec.Raw(b"[%b]" % items)}
    return msgspec.json.encode(value)
