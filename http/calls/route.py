"""A row of the route table: one operation of the API as data.

A row names the message that answers it. Everything else follows: the scopes from the operation's name, the parser from
the query struct, the decoder from the body type, the fields of the message from the path and the call (`fields.py`),
the API document from all of them. What does not fit together fails when the table is built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from trunkline.actors.runtime.ref import Ref
from trunkline.actors.values.ids import ROOT
from trunkline.actors.values.structs import Message
from trunkline.actors.values.terms import Success
from trunkline.http.calls.path_parts import PathPart, parts_of
from trunkline.http.calls.query_string import QueryParser

if TYPE_CHECKING:
    from trunkline.actors.records.resource import Resource
    from trunkline.http.calls.request import Response

Access = Literal["none", "read", "write"]
Area = Literal["application", "user", "public"]
DeviceAccess = Literal["no", "read", "self", "any"]
Handler = Callable[[Any], Awaitable["Response"]]
"""Takes a `Call`."""

APP = "/applications/{applicationId}"
DEVICE = APP + "/devices/{deviceId}"
TABLE = APP + "/data-tables/{dataTableId}"
ME = "/me"


class Address(NamedTuple):
    """Which actor a row asks: its kind, and the names of the ids (of the path, or of the user) that lead to it."""

    kind: str
    id: str
    parent: str | None = "application"

    def ref(self, ids: Mapping[str, Any]) -> Ref:
        """The actor at these ids."""
        return Ref(self.kind, ROOT if self.parent is None else ids[self.parent], ids[self.id])


ACCOUNT = Address("user", "user", None)
APPLICATION = Address("application", "application", None)
DEVICE_ACTOR = Address("device", "device")
DATA_TABLE = Address("dataTable", "dataTable")
EVENT_LOG = Address("eventLog", "application")


class Links(NamedTuple):
    """The `_links` of what a row answers, and of the items where that is a list: name to a template of the address."""

    own: Mapping[str, str]
    items: Mapping[str, str] | None = None


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without query parameters of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One operation.

    `message` is asked of the actor at `to`, or read where `to` is None; its fields are filled from the call by their
    names. `then` reads the answer after an ask (a changed record as it is now). `makes` names the id that the answer of
    the actor brings (`Created`), for that read. `handler` stands in for all of these where an operation is more than a
    message (streams, log-in).

    `access` and `area` give the scopes: reads also take the `.read` ones; operations about the user (`/me`) do not
    take those of applications. `device` says what a device token may do here: nothing ("no"), read ("read"), act
    for itself and its peripherals ("self"), or act on every device that its key allows ("any").

    `resource` is the plain resource that the row is about. `prepare` changes the decoded body before the actor is
    asked; it may wait.
    """

    method: str
    path: str
    operation: str
    summary: str
    message: type[Message] | None = None
    to: Address | None = None
    then: type[Message] | None = None
    uses: tuple[type[Message], ...] = ()
    """Further messages that the handler fills from the call."""
    makes: str | None = None
    resource: Resource | None = None
    prepare: Callable[[Any], Awaitable[Any]] | None = None
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
    area: Area = "application"
    device: DeviceAccess = "no"
    cli: bool = False
    """Also open to the scopes of command line tools."""
    handler: Handler | None = None
    event: tuple[str, Any] | None = None
    """For streams: the event's name and the type of its data."""
    lane: bool = False
    """An array of items waits for its place in the lane of bulk calls."""
    hot: bool = False
    """Dispatched before Quart, because heavy traffic goes through it."""
    links: Links | None = None
    also: Mapping[int, str] = field(default_factory=dict)
    """Further status codes worth documenting, with a sentence each."""
    scopes: frozenset[str] = field(init=False)
    parser: QueryParser = field(init=False)
    decoder: msgspec.json.Decoder[Any] | None = field(init=False)
    parts: tuple[PathPart, ...] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "scopes", frozenset(_scopes_of(self)))
        put(self, "parser", QueryParser(self.query))
        put(self, "decoder", None if self.body is None else msgspec.json.Decoder(self.body))
        put(self, "parts", parts_of(self.path))
        if self.to is not None and self.to.parent is not None and self.to.parent not in self.ids:
            raise TypeError(
                f"{self.operation}: {self.path} has no {{{self.to.parent}Id}}, which {self.to.kind} needs"
            )

    @property
    def throttle(self) -> str | None:
        """The bucket that a call spends, None for none."""
        return self.message.throttle if self.message is not None else None

    @property
    def ids(self) -> frozenset[str]:
        """The names of what the path and the token of a call give."""
        names = {part.name for part in self.parts}
        return frozenset(names | {"user"} if self.area == "user" else names)

    @property
    def creates(self) -> bool:
        """Whether the row asks an actor that does not exist yet; then its id is made by the edge."""
        return self.to is not None and self.to.id not in self.ids

    @property
    def made(self) -> str | None:
        """The name of the id that an answer brings."""
        return self.to.id if self.to is not None and self.creates else self.makes


def _scopes_of(route: Route) -> list[str]:
    """The scopes of which a token needs one (specification, Authentication, rule 6)."""
    if route.access == "none":
        return []
    resource = route.operation.split(".")[0]
    families = ["all.User"] if route.area == "user" else ["all.Application", "all.Organization", "all.User"]
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
