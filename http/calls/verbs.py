"""Routes by what they do: most rows of `http/resources` are made by one of these.

`get` and `list_of` read, `post`, `patch` and `delete` change something, `stream` opens a stream, `job` queues a job.
Each takes the path, the name of the operation, its summary and what answers it; the fields of `Route` that are left
are given by name. What needs no token (`access="none"`) is of the area `public`. Owns what the kinds of routes have in
common. Does not own what a route is (`route.py`), or the five routes of a plain resource (`resource_routes.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from trunkline.actors.core.values.structs import Message
from trunkline.actors.platform.jobs.messages import JobQueued
from trunkline.http.calls.route import Handler, LinkTemplates, NoQuery, Route


class Shown(NamedTuple):
    """How a record is shown, when it is got and after a change: the message that reads it, its view, the query that
    chooses what of it is shown, and its links."""

    message: type[Message]
    view: Any
    query: type[msgspec.Struct] = NoQuery
    links: LinkTemplates | None = None


By = type[Message] | Handler | Shown
"""What answers an operation: a message, a handler, or the read of a record."""


def get(path: str, operation: str, summary: str, by: By, reply: Any = None, **more: Any) -> Route:
    """An operation that reads. `reply` is left out where a record is shown."""
    if isinstance(by, Shown):
        shown = {"message": by.message, "reply": by.view, "query": by.query, "links": by.links}
        return _route("GET", path, operation, summary, shown | more)
    return _route("GET", path, operation, summary, {**_answered(by), "reply": reply, **more})


def list_of(
    path: str,
    operation: str,
    summary: str,
    by: type[Message] | Handler,
    view: Any,
    page: type[msgspec.Struct],
    **more: Any,
) -> Route:
    """A list of records in pages. `view` is one of them, `page` the query."""
    fields = {**_answered(by), "reply": ("list", view), "query": page, **more}
    return _route("GET", path, operation, summary, fields)


def post(
    path: str,
    operation: str,
    summary: str,
    by: type[Message] | Handler,
    shows: Shown | None = None,
    **more: Any,
) -> Route:
    """An operation that creates or does something. The answer `shows` the record, or is `reply`."""
    return _change("POST", path, operation, summary, by, shows, more)


def patch(
    path: str,
    operation: str,
    summary: str,
    by: type[Message] | Handler,
    shows: Shown | None = None,
    **more: Any,
) -> Route:
    """An operation that changes something. The answer `shows` the record, or is `reply`."""
    return _change("PATCH", path, operation, summary, by, shows, more)


def delete(
    path: str,
    operation: str,
    summary: str,
    by: type[Message] | Handler,
    shows: Shown | None = None,
    **more: Any,
) -> Route:
    """An operation that deletes something. The answer `shows` the record of which it was a part, or is `reply`."""
    return _change("DELETE", path, operation, summary, by, shows, more)


def stream(
    path: str, operation: str, summary: str, handler: Handler, event: tuple[str, Any], **more: Any
) -> Route:
    """A stream of events. `event` is the name of one and the type of its data."""
    return _route("GET", path, operation, summary, {"handler": handler, "event": event, **more})


def job(path: str, operation: str, summary: str, handler: Handler, **more: Any) -> Route:
    """An operation whose handler queues a job. It is a POST unless `method` says otherwise, and a read unless `access`
    says otherwise."""
    method = more.pop("method", "POST")
    fields = {"handler": handler, "reply": JobQueued, "ok": 202, **more}
    return _route(method, path, operation, summary, fields)


def _change(
    method: str, path: str, operation: str, summary: str, by: By, shows: Shown | None, more: dict[str, Any]
) -> Route:
    fields: dict[str, Any] = {"access": "write", **_answered(by)}
    if shows is not None:
        fields |= {"then": shows.message, "reply": shows.view, "query": shows.query, "links": shows.links}
    return _route(method, path, operation, summary, fields | more)


def _answered(by: By) -> dict[str, Any]:
    return {"message": by} if isinstance(by, type) else {"handler": by}


def _route(method: str, path: str, operation: str, summary: str, fields: dict[str, Any]) -> Route:
    public = {"area": "public"} if fields.get("access") == "none" else {}
    return Route(method=method, path=path, operation=operation, summary=summary, **public | fields)
