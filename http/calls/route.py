"""A row of the route table: one operation of the API as data.

A row names the message that answers it. Everything else follows: the scopes from the operation's name, the
parser from the query struct, the decoder from the body type, the API document from all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trunkline.actors.values.structs import Message
from trunkline.actors.values.terms import Success
from trunkline.http.calls.query_string import QueryParser

if TYPE_CHECKING:
    from trunkline.http.calls.call import Call, Response

Target = Literal["device", "application", "account", "dataTable", "eventLog"]
Access = Literal["none", "read", "write"]
Reach = Literal["application", "user", "public"]
DeviceAccess = Literal["no", "read", "self", "any"]

APP = "/applications/{applicationId}"
DEVICE = APP + "/devices/{deviceId}"
TABLE = APP + "/data-tables/{dataTableId}"
ME = "/me"


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without query parameters of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One operation.

    `message` is asked of the actor that `to` names, or read where `to` is None; its fields are filled from
    the call by their names. `then` reads the answer after an ask (a changed record as it is now). `handler`
    stands in for both where an operation is more than a message (streams, log-in).

    `access` and `reach` give the scopes: reads also take the `.read` ones; `user` operations (`/me`) do not
    take those of applications. `device` says what a device token may do here: nothing, read ("read"), act
    for itself and its peripherals ("self"), or act on every device that its key allows ("any").
    """

    method: str
    path: str
    operation: str
    summary: str
    message: type[Message] | None = None
    to: Target | None = None
    then: type[Message] | None = None
    creates: Literal["device", "application", "record", "dataTable"] | None = None
    kind: str | None = None
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    optional_body: bool = False
    """The body may be left out; then it is None."""
    reply: Any = Success
    answers: bool = False
    """What the actor answers is the reply; otherwise it is `then`, or else that the call succeeded."""
    ok: int = 200
    job: Any = None
    """What is answered with 202 where the operation may queue a job instead of being done at once."""
    access: Access = "read"
    reach: Reach = "application"
    device: DeviceAccess = "no"
    cli: bool = False
    """Also open to the scopes of command line tools."""
    handler: Callable[[Call], Awaitable[Response]] | None = None
    event: tuple[str, Any] | None = None
    """For streams: the event's name and the type of its data."""
    lane: bool = False
    """An array of items waits for its place in the lane of bulk calls."""
    hot: bool = False
    """Dispatched before Quart, because heavy traffic goes through it."""
    also: Mapping[int, str] = field(default_factory=dict)
    """Further status codes worth documenting, with a sentence each."""
    scopes: frozenset[str] = frozenset()
    parser: QueryParser | None = None
    decoder: msgspec.json.Decoder[Any] | None = None
    params: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "scopes", frozenset(scopes_of(self)))
        put(self, "parser", QueryParser(self.query))
        put(self, "decoder", None if self.body is None else msgspec.json.Decoder(self.body))
        parts = self.path.split("/")
        put(self, "params", tuple(part[1:-1] for part in parts if part.startswith("{")))

    @property
    def throttle(self) -> str | None:
        """The bucket that a call spends, None for none."""
        return self.message.throttle if self.message is not None else None


def scopes_of(route: Route) -> list[str]:
    """The scopes of which a token needs one (specification, Authentication, rule 6)."""
    if route.access == "none":
        return []
    resource = route.operation.split(".")[0]
    families = ["all.User"] if route.reach == "user" else ["all.Application", "all.Organization", "all.User"]
    if route.operation.startswith(("applications.", "application.delete")) and route.reach != "user":
        families = [
            each for each in families if each != "all.Application" or route.operation != "applications.post"
        ]
    scopes = list(families)
    if route.access == "read":
        scopes += [f"{family}.read" for family in families]
    if route.cli:
        scopes += ["all.Application.cli", "all.User.cli"]
    scopes += [f"{resource}.*", route.operation]
    if route.device != "no":
        scopes.append("all.Device")
        if route.access == "read":
            scopes.append("all.Device.read")
    return scopes


class RouteTable:
    """All rows, and the way from a method and a path to one of them."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self.routes = routes
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for part in route.path.strip("/").split("/"):
                node = node.setdefault("{}" if part.startswith("{") else part, {})
            methods: dict[str, Route] = node.setdefault("/", {})
            assert route.method not in methods, f"two rows for {route.method} {route.path}"
            methods[route.method] = route
        self.operations = frozenset(route.operation for route in routes)
        self.scopes = {route.operation: route.scopes for route in routes}

    def match(self, path: str) -> tuple[dict[str, Route], list[str]] | None:
        """The rows of a path by method, and the values of its placeholders; None for an unknown path.

        A literal segment wins over a placeholder.
        """
        node = self._root
        values: list[str] = []
        for part in path.strip("/").split("/"):
            found = node.get(part) if part not in ("/", "{}") else None
            if found is None:
                found = node.get("{}")
                if found is None or not part:
                    return None
                values.append(part)
            node = found
        methods = node.get("/")
        return None if methods is None else (methods, values)
