"""Calls that workflows make to the operations of this server, without the network.

They take the way of all calls: scopes, access, throttles, audit. Only the caller is another one: a workflow, which has
no token, but may do in its application what its authors may do now. Streams, downloads, uploads in pieces and
operations without a token are not for such calls.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from trunkline.actors.access.authority import Access, Principal
from trunkline.actors.core.formulas.json_text import json_text
from trunkline.actors.core.runtime.computing import decoded
from trunkline.actors.core.runtime.work import current_work
from trunkline.actors.core.values.errors import DomainError, Forbidden, Invalid, NotFound
from trunkline.actors.core.values.names import similar_names
from trunkline.actors.engine.api_calls import ApiAnswer, ApiCall
from trunkline.actors.people.organizations.mandates import Authors
from trunkline.http.calls.admissions import Admission
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import error_response
from trunkline.http.calls.request import Request, Response
from trunkline.http.calls.route import Route

_SCOPES: Final = frozenset({"all.Application"})
_OF_ALL: Final = frozenset({"_actions", "_embedded", "_links"})
"""Parameters of the query that every operation has."""
_SEGMENT_CHARS_MAX: Final = 16_384
"""Characters of a part of a path; the path of a call over the network has not many more."""


class InternalCalls:
    """Makes calls by way of the dispatcher."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def is_read(self, operation: str) -> bool:
        """Whether an operation changes nothing; False for one that does not exist."""
        route = self._dispatcher.route_of(operation)
        return route is not None and route.access == "read" and route.method == "GET"

    async def call(self, call: ApiCall) -> ApiAnswer:
        """Make a call. Every failure is an answer."""
        try:
            request, admission = self._admitted(call)
        except DomainError as refusal:
            response = Response(*error_response(refusal))
        else:
            within = current_work.get()
            response = await self._dispatcher.handle(request, None, admission)
            current_work.set(within)
        return ApiAnswer(response.status, await _body(response))

    def _admitted(self, call: ApiCall) -> tuple[Request, Admission]:
        route = self._route(call.operation)
        params = {"applicationId": call.application.hex(), **call.params}
        values = [_segment(params, part.placeholder, call.operation) for part in route.path_parameters]
        path = route.path
        for part, value in zip(route.path_parameters, values, strict=True):
            path = path.replace(f"{{{part.placeholder}}}", quote(value, safe="", errors="replace"))
            params.pop(part.placeholder)
        params.pop("applicationId", None)
        query, body = _query_and_body(route, params)
        headers = {b"content-type": b"application/json"}
        request = Request(route.method, path, query, headers, body, "", origin=call.origin)
        return request, self._dispatcher.admissions.check(route, values, request, self._principal(call))

    def _principal(self, call: ApiCall) -> Principal:
        if call.token:
            return self._dispatcher.tokens.authenticate(f"Bearer {call.token}".encode("latin1", "replace"))
        authors, application = self._dispatcher.system.component(Authors), call.application
        found = [authors.rights(application, each) for each in call.by.mandates]
        scopes = reduce(self._common, (each.scopes for each in found), _SCOPES)
        principal = Principal(
            kind="application", scopes=scopes, expires_ms=None, application_id=application, author=call.by
        )
        if found:
            level = min(each.level for each in found)
            principal.accesses[application] = Access(level, application)
        return principal

    def _common(self, some: frozenset[str], others: frozenset[str]) -> frozenset[str]:
        """The scopes that both have."""
        covers = self._dispatcher.tokens.covers
        return frozenset(
            scope for own, other in ((some, others), (others, some)) for scope in own if covers(other, scope)
        )

    def _route(self, operation: str) -> Route:
        route = self._dispatcher.route_of(operation)
        if route is None:
            near = similar_names(operation, sorted(self._dispatcher.table.operations))
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise NotFound(f"This server has no operation {operation[:200]}{meant}.")
        if route.access == "none" or route.event is not None or route.streams_body:
            raise Forbidden(f"{operation} is not for calls of workflows.")
        return route


def _segment(params: dict[str, Any], name: str, operation: str) -> str:
    value = params.get(name)
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise Invalid(f"params: {operation} needs {name}.")
    text = str(value)
    if len(text) > _SEGMENT_CHARS_MAX:
        raise Invalid(
            f"params: {name} has {len(text)} characters; a part of a path has at most {_SEGMENT_CHARS_MAX}."
        )
    return text


def _query_and_body(route: Route, params: dict[str, Any]) -> tuple[bytes, bytes]:
    """The query string and the body. What is not of the query is the body."""
    known = _OF_ALL | set(route.query.__struct_encode_fields__)
    query = {name: _text(params.pop(name)) for name in list(params) if name in known}
    if not route.free_query:
        query.setdefault("_links", "false")
    if route.body is None or len(params) > 1:
        for name in params:
            takes = ", ".join(sorted(known - _OF_ALL)) or "no others"
            more = "" if route.body is None else "; one more value is the body"
            raise Invalid(
                f"params: {name[:100]} is not a parameter of {route.operation}. Beside those of its path it takes "
                f"{takes}{more}."
            )
    body = b""
    for value in params.values():
        # A text is JSON already.
        body = _text(value).encode("utf-8", "replace")
    return urlencode(query, errors="replace").encode(), body


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(json_text(value))


async def _body(response: Response) -> Any:
    if response.stream is not None:
        response.stream.close()
        return {"message": "The answer is a stream, which workflows cannot read."}
    if not response.body:
        return None
    try:
        return await decoded(response.body)
    except (msgspec.DecodeError, RecursionError):
        return response.body.decode("utf-8", "replace")
