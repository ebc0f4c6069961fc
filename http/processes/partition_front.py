"""What each owner of a partition has in front of its application: whatever is for another partition is passed on.

Owns which partition a request is for, as its path and its host say. A call of an application is for the partition that
has it; so are its webhooks, files, downloads and experiences. Everything else is for the root.

What another owner has passed on is answered here, so no request goes round in a circle. A door only knows applications,
and on a machine that stands by it may not know the newest, so what doors send is looked at like that of a client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import structlog

from trunkline.actors.core.records.places import ROOT_PARTITION, Places
from trunkline.actors.core.values.signed_claims import unverified_claims
from trunkline.actors.core.values.store_errors import Outdated, StoreError
from trunkline.http.calls.errors import error_response, protocol_error
from trunkline.http.experiences.layer import ExperienceHosts, name_of
from trunkline.http.processes.door import Door, answer
from trunkline.http.wire.asgi import Application, header_of
from trunkline.http.wire.exchange import Exchange
from trunkline.http.wire.fast_path import FastPath, Respond
from trunkline.http.wire.request_context import current_request

OF_APPLICATION: Final = re.compile(rb"/(?:applications|files|webhooks)/([0-9a-fA-F]{24})")
"""The beginning of paths that name an application. The token of a webhook begins with the id of its application."""
_LINKS: Final = re.compile(rb"/(?:downloads|contents)\?(?:.*&)?token=([^&]*)")
_EXPERIENCE: Final = re.compile(rb"/x/([^/?]*)")
_BY_JOB_OF_USER: Final = re.compile(rb"/applications/[0-9a-fA-F]{24}/clone(?:\?|$)")
"""What a job of the user does, which is in the root."""
UNREADABLE: Final = "A partition of the data cannot be read; the reason is in the log of the server."
_HERE: Final = frozenset({b"/healthz", b"/readyz", b"/mqtt"})
"""What each process answers for itself."""

_log = structlog.get_logger("trunkline.processes")


def application_of(target: bytes) -> bytes | None:
    """The application that a target names at its beginning, if it does."""
    found = OF_APPLICATION.match(target)
    return None if found is None or _BY_JOB_OF_USER.match(target) else bytes.fromhex(found[1].decode())


class Routing:
    """Which partition a request is for."""

    def __init__(self, places: Places, hosts: ExperienceHosts) -> None:
        self.places = places
        self._hosts = hosts

    def of_request(self, target: bytes, host: bytes) -> int:
        """The number of the partition."""
        address = self._hosts.of_name(name_of(host))
        if address is None and (slug := _EXPERIENCE.match(target)) is not None:
            address = self._hosts.of_slug(slug[1].decode("latin1"))
        if address is not None:
            return self.places.of_application(address.application)
        application = application_of(target)
        if application is None and (link := _LINKS.match(target)) is not None:
            application = _application_of_link(link[1])
        if application is not None:
            return self.places.of_application(application)
        return self.places.own if target.partition(b"?")[0] in _HERE else ROOT_PARTITION


class DoorRouting:
    """Which partition a door passes a request on to: by the application in its path, everything else to the root."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def of_request(self, target: bytes, _host: bytes) -> int:
        """The number of the partition."""
        application = application_of(target)
        return ROOT_PARTITION if application is None else self.places.of_application(application)


class _Route:
    """Where requests with a known head go, as long as it `holds`."""

    __slots__ = ("door", "holds")

    def __init__(self, door: Door) -> None:
        self.door = door
        self.holds = True


class PartitionFront:
    """The fast path and the ASGI application of an engine, which pass on what is for another partition."""

    def __init__(
        self,
        app: Application | None,
        fast_path: FastPath | None,
        routing: Routing | DoorRouting,
        own: int | None,
        doors: Mapping[int, Door],
    ) -> None:
        """`app` and `fast_path` are those of partition `own`; a door has none."""
        self._app = app
        self._fast_path = fast_path
        self._routing = routing
        self._own = own
        self._doors = doors
        self._epoch = routing.places.epoch
        self._routes: dict[int, _Route] = {}

    def begin(self, exchange: Exchange, respond: Respond, again: Any) -> bool:
        """Handle a whole request, or pass it on (`FastPath`)."""
        if self._epoch != self._routing.places.epoch:
            self._forget_routes()
        head = exchange.known
        memo = None if head is None else head.memo
        if memo is None or (type(memo) is _Route and not memo.holds):
            try:
                place = self._place_of(exchange)
            except StoreError:
                return False  # why is told by what comes next
            memo = None
            if place != self._own:
                memo = self._routes.setdefault(place, _Route(self._doors[place]))
            if head is not None:
                head.memo = memo
        if type(memo) is _Route:
            return memo.door.begin(exchange, respond, again)
        if self._fast_path is not None and self._fast_path.begin(exchange, respond, again):
            return True
        if head is not None and self._epoch:
            head.memo = None  # its application may have been moved
        return False

    def _forget_routes(self) -> None:
        """Look again where requests go that were met before, as an application was moved."""
        self._epoch = self._routing.places.epoch
        for route in self._routes.values():
            route.holds = False
        self._routes = {}

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            try:
                place = self._place_of(current_request.get())
            except Outdated as refusal:
                await answer(send, *error_response(refusal))
                return
            except StoreError as broken:
                _log.error("a partition cannot be read", reason=str(broken))
                await answer(send, 503, *protocol_error(503, UNREADABLE))
                return
            if place != self._own:
                await self._doors[place](scope, receive, send)
                return
        if self._app is None:
            await self._doors[ROOT_PARTITION](scope, receive, send)  # the lifespan, which has nothing to do
        else:
            await self._app(scope, receive, send)

    def _place_of(self, exchange: Any) -> int:
        host = header_of(exchange.headers, b"host") or b""
        return self._routing.of_request(exchange.target, host)


def _application_of_link(token: bytes) -> bytes | None:
    """The application that the claims of a signed link name; whether it is valid is seen there."""
    claims = unverified_claims(token)
    try:
        return bytes.fromhex(claims.get("sub", claims.get("a", ""))[:24])
    except (TypeError, ValueError):
        return None
