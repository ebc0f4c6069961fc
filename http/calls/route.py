"""A route: one operation of the API as data.

A route names the message that answers it. Everything else is derived: the scopes from the operation's name, the query
parser from the query struct, the decoder from the body type, the fields of the message from the path and the call
(`message_fields.py`), the OpenAPI document from all of them. An inconsistent route fails when the table is built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.terms import Success
from trunkline.actors.people.accounts.scopes import USER_AREAS, Area, scopes_of
from trunkline.actors.people.organizations.roles import Level, level_of
from trunkline.http.calls.late_decoder import LateDecoder
from trunkline.http.calls.path_parameters import PathParameter, parse_path
from trunkline.http.calls.query_string import QueryParser, query_parser

if TYPE_CHECKING:
    from trunkline.actors.core.records.resource import Resource
    from trunkline.http.calls.request import Response

AccessLevel = Literal["none", "read", "write"]
DeviceAccess = Literal["no", "read", "self", "any"]
LatencyClass = Literal["state", "backlog", "command", "write", "read", "stream", "public", "none"]
"""The classes of operations by which the times of calls are counted. "backlog" are calls that wait in the backlog lane,
"public" are logins and downloads, "none" are requests that no operation takes."""
LATENCY_CLASSES: tuple[LatencyClass, ...] = get_args(LatencyClass)
Handler = Callable[[Any], Awaitable["Response"]]
"""Takes a `Call`."""

APP_PATH = "/applications/{applicationId}"
DEVICE_PATH = APP_PATH + "/devices/{deviceId}"
DATA_TABLE_PATH = APP_PATH + "/data-tables/{dataTableId}"
FLOW_PATH = APP_PATH + "/flows/{flowId}"
ME_PATH = "/me"
ORG_PATH = "/orgs/{orgId}"


class ActorAddress(NamedTuple):
    """Which actor a route asks: its kind, and the names of the ids (of the path, or of the user) that identify it."""

    kind: str
    id: str
    parent: str | None = "application"

    def ref(self, ids: Mapping[str, Any]) -> Ref:
        """The actor with these ids."""
        return Ref(self.kind, ROOT if self.parent is None else ids[self.parent], ids[self.id])


USER_ACTOR = ActorAddress("user", "user", None)
ORGANIZATION_ACTOR = ActorAddress("org", "org", None)
APPLICATION_ACTOR = ActorAddress("application", "application", None)
DEVICE_ACTOR = ActorAddress("device", "device")
DATA_TABLE_ACTOR = ActorAddress("dataTable", "dataTable")
EXPERIENCE_ACTOR = ActorAddress("experience", "application")
FLOW_ACTOR = ActorAddress("flow", "flow")
EVENT_LOG_ACTOR = ActorAddress("eventLog", "application")
FILE_TREE_ACTOR = ActorAddress("fileTree", "application")


class LinkTemplates(NamedTuple):
    """The `_links` of a route's response, and of the items if that is a list: name to URL template."""

    own: Mapping[str, str]
    items: Mapping[str, str] | None = None


class Group(NamedTuple):
    """A group of operations in the documents: its name, and a sentence about it."""

    name: str
    sentence: str


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A route without query parameters of its own."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """One operation.

    The actor at `to` is asked `message`; if `to` is None, a reader answers it. Its fields are filled from the call by
    name. `then` is read after an ask and gives the response (the record after the change). `new_id` names the id in the
    actor's answer (`Created`), for that read. `handler` replaces all of these if an operation is more than one message
    (streams, login).

    `access` and `area` determine the scopes: reads also accept the `.read` scopes; operations on the user (`/me`) do
    not accept the scopes of organizations and applications, those on organizations not the scopes of applications.
    `level` is what a member of an organization needs in it, or in its application. `device` says what a device token
    may do: nothing ("no"), read ("read"), act for its own device and its peripherals ("self"), or act on every device
    that its key allows ("any").

    `resource` is the plain resource of the route. `prepare` changes the decoded body before the actor is asked; it may
    wait.
    """

    method: str
    path: str
    operation: str
    summary: str
    message: type[Message] | None = None
    to: ActorAddress | None = None
    then: type[Message] | None = None
    uses: tuple[type[Message], ...] = ()
    """Further messages that the handler fills from the call."""
    new_id: str | None = None
    resource: Resource | None = None
    prepare: Callable[[Any], Awaitable[Any]] | None = None
    query: type[msgspec.Struct] = NoQuery
    below: bool = False
    """All paths below its own lead to it as well, and the handler reads `Request.path`."""
    free_query: bool = False
    """Any query string is accepted, and the handler reads it."""
    body: Any = None
    optional_body: bool = False
    """The body may be omitted; then it is None."""
    takes_many: bool = False
    """The body may be a list of records, and so have as many values as `bulk_body_values_max`."""
    streams_body: bool = False
    """The handler reads the body in pieces while it arrives (`Request.stream`)."""
    upgrades: bool = False
    """A client may ask for WebSocket: the handler then accepts `Request.offer` (`upgraded_calls.py`)."""
    body_limit: str = "multipart_bytes_max"
    """The limit of such a body, beside `form_fields_bytes_max`."""
    body_advice: str = ""
    """What somebody should do whose body is larger."""
    form: type[msgspec.Struct] | None = None
    """The fields of such a body, if it is a form (`form_data.py`). The type of a file is bytes."""
    reply: Any = Success
    """The type of the response; for a list `("list", <type of an item>)`."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """For lists: the fields of the answer that not every list has, with their types. Ids of the path follow from it."""
    answer_is_reply: bool = False
    """The response is the actor's answer; otherwise it is that of `then`, or else only success."""
    ok: int = 200
    job: Any = None
    """The response with status 202, if the operation may queue a job instead of acting at once."""
    problems: Any = None
    """The response with status 422, if the operation checks many resources and shows all that is wrong with them."""
    checked: Any = None
    """The response with status 200, if the operation may only check instead of creating something."""
    refusal: Any = None
    """The response with status 400, if it says more than other errors."""
    access: AccessLevel = "read"
    area: Area = "application"
    device: DeviceAccess = "no"
    anonymous: bool = False
    """A call without a token is admitted too; its handler decides what such a caller sees."""
    cli: bool = False
    """Also accepts the scopes of command line tools."""
    handler: Handler | None = None
    only_reads: bool = False
    """The handler changes nothing, although the method is not GET."""
    scope: str = ""
    """The operation whose scopes it accepts; by default its own."""
    event: tuple[str, Any] | None = None
    """For streams: the name of the event and the type of its data."""
    resets: bool = False
    """For streams: a client that resumes may get the event `reset`."""
    backlog_handler: Handler | None = None
    """Handles the calls whose query has `backlog=true`, and decodes their bodies."""
    bulk: bool = False
    """A call whose body is an array takes its turn among the bulk calls, by owner, and a place for each item."""
    takes_key: bool = False
    """Calls may have an Idempotency-Key (`idempotency.py`). The owner of their answers is the actor at `to`; a handler
    keeps them with `Call.keep`."""
    fast_path: bool = False
    """Dispatched without Quart, because its calls are frequent."""
    links: LinkTemplates | None = None
    group: Group | None = None
    """Its group in the documents; by default that of its name (`http/openapi/document.py`)."""
    example: Any = None
    """An example of the body, for the documents; by default that of its name (`http/openapi/examples.py`)."""
    also: Mapping[int, str] = field(default_factory=dict)
    """Further status codes for the documentation, each with a description."""
    audited: bool = field(init=False)
    """Whether a call has an entry in the audit log of each owner that it concerns."""
    latency_class: LatencyClass = field(init=False)
    """The class of operations with which the times of its calls are counted."""
    counts_refusals_of: Literal["device", "application"] | None = field(init=False)
    """Whose refused calls are counted for the overview of the application (`fleet/devices/state/traffic.py`): those of
    operations with a throttle."""
    level: Level = field(init=False)
    scopes: frozenset[str] = field(init=False)
    parser: QueryParser = field(init=False)
    decoder: msgspec.json.Decoder[Any] | LateDecoder | None = field(init=False)
    path_parameters: tuple[PathParameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "audited", _is_audited(self))
        put(self, "latency_class", _latency_class_of(self))
        put(self, "scope", self.scope or self.operation)
        put(self, "level", level_of(self.operation, self.access))
        put(self, "scopes", frozenset(_scopes_of(self)))
        put(self, "parser", query_parser(self.query))
        keep = partial(put, self, "decoder")
        put(self, "decoder", None if self.body is None else LateDecoder(self.body, keep))
        put(self, "path_parameters", parse_path(self.path))
        put(self, "counts_refusals_of", _counts_refusals_of(self))
        if self.to is not None and self.to.parent is not None and self.to.parent not in self.id_names:
            raise TypeError(
                f"{self.operation}: {self.path} has no {{{self.to.parent}Id}}, which {self.to.kind} needs"
            )
        if self.takes_key and (self.to is None or self.creates_actor):
            raise TypeError(f"{self.operation}: the answers of calls with a key need an owner that exists")
        if self.audited and self.fast_path:
            raise TypeError(f"{self.operation}: an audited operation cannot take the fast path")

    @property
    def throttle(self) -> str | None:
        """The bucket of the throttle that a call counts against, None if it is not throttled."""
        return self.message.throttle if self.message is not None else None

    @property
    def id_names(self) -> frozenset[str]:
        """The names of the ids that the path and the token of a call give."""
        names = {part.name for part in self.path_parameters}
        return frozenset(names | {"user"} if self.area in USER_AREAS else names)

    @property
    def is_read(self) -> bool:
        """Whether the response is what is stored, so that it may be old."""
        return self.to is None and (self.message is not None or self.method == "GET" or self.only_reads)

    @property
    def creates_actor(self) -> bool:
        """Whether the route asks an actor that does not exist yet; then the dispatcher makes its id."""
        return self.to is not None and self.to.id not in self.id_names

    @property
    def created_id(self) -> str | None:
        """The name of the id of what a call creates, None if it creates nothing."""
        return self.to.id if self.to is not None and self.creates_actor else self.new_id


NOT_AUDITED: frozenset[str] = frozenset(
    {
        # What devices and programs do all the time, and what has a log of its own.
        "device.link",
        "device.sendState",
        "device.sendCommand",
        "devices.sendCommand",
        "device.setConnectionStatus",
        "dataTableRows.post",
        "dataTableRow.patch",
        "dataTableRow.delete",
        "flow.setStorageEntry",
        "flow.pressVirtualButton",
        "flow.test",
        "application.mqttPublishMessage",
        # What changes nothing.
        "applicationDashboard.preview",
        "dashboard.preview",
        # The log is deleted with its organization.
        "org.delete",
    }
)
ALSO_AUDITED: frozenset[str] = frozenset(
    {"me.delete", "me.respondToInvite", "me.transferResources", "orgInvites.post"}
)
"""Operations on users, or without a token, that change what organizations or persons have. Their handlers say whose
logs they are for (`Call.concern`)."""


def _is_audited(route: Route) -> bool:
    if route.operation in ALSO_AUDITED:
        return True
    return route.access == "write" and route.area != "user" and route.operation not in NOT_AUDITED


def _counts_refusals_of(route: Route) -> Literal["device", "application"] | None:
    if route.throttle is None or "application" not in route.id_names:
        return None
    return "device" if "device" in route.id_names else "application"


def _latency_class_of(route: Route) -> LatencyClass:
    if route.access == "none":
        return "public"
    if route.event is not None:
        return "stream"
    if route.throttle == "send_state":
        return "state"
    if route.throttle == "send_command":
        return "command"
    return "read" if route.access == "read" and route.to is None and route.job is None else "write"


def _scopes_of(route: Route) -> list[str]:
    """The scopes, of which a token needs one (specification, Authentication, rule 6)."""
    if route.access == "none":
        return []
    scopes = scopes_of(route.scope, route.access, area=route.area, cli=route.cli)
    if route.device != "no":
        scopes.append("all.Device")
        if route.access == "read":
            scopes.append("all.Device.read")
    return scopes
