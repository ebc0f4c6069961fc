"""One call, and the services of the HTTP layer that its handler may use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from trunkline.actors.access.authority import Principal
    from trunkline.actors.core.runtime.actor import Stamp
    from trunkline.actors.core.runtime.ref import Ref
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.core.values.origin import Origin
    from trunkline.actors.core.values.structs import Message
    from trunkline.actors.people.accounts.login_throttle import LoginThrottle
    from trunkline.actors.people.audit.messages import PrimaryTarget
    from trunkline.http.calls.auth import Tokens
    from trunkline.http.calls.login_failures import LoginFailures
    from trunkline.http.calls.public_answers import PublicAnswers
    from trunkline.http.calls.request import Request, Response
    from trunkline.http.calls.route import Route


class Service(Protocol):
    """What the HTTP layer offers to handlers. `Dispatcher` is the implementation."""

    system: System
    tokens: Tokens
    login_throttle: LoginThrottle
    login_failures: LoginFailures
    public_answers: PublicAnswers
    token_ttl_s: int

    def route_of(self, operation: str) -> Route | None:
        """The route of an operation; None for an unknown one."""
        ...

    def ref(self, call: Call) -> Ref:
        """The actor that the route asks."""
        ...

    def message(self, call: Call, message: type[Message]) -> Message:
        """A message whose fields are filled from the call. `message` is one of the messages of the route."""
        ...

    async def read(self, call: Call, message: type[Message]) -> Any:
        """Answer a read message whose fields are filled from the call."""
        ...

    async def read_message(self, message: Message) -> Any:
        """Answer a read message."""
        ...


class Concerned(NamedTuple):
    """An owner in whose audit log a call has an entry, an organization or a user, and what the entry is about."""

    owner: bytes
    type: PrimaryTarget | None = None
    id: str | None = None
    name: str | None = None


class Keep(NamedTuple):
    """Keeps the response to a call with what the call writes: `stamp` with a turn, `add` with a batch."""

    stamp: Stamp
    add: Callable[[Response, Any], None]


class Call:
    """A matched, authenticated and parsed call.

    `ids` are the values of the path parameters by name (`application` for `{applicationId}`): ids are raw bytes, names
    are text. Operations on the current user also have `user`. The fields of messages are filled from a call by name
    (`message_fields.py`). `with_links` says whether the response contains `_links`. A call with an Idempotency-Key has
    `keep`, which keeps its response; `shown` is the record in it. `concerned` are owners in whose audit logs the call
    has an entry, beside the owner of what is at its path or in its answer.
    """

    __slots__ = (
        "_principal",
        "body",
        "concerned",
        "ids",
        "keep",
        "now_ms",
        "query",
        "request",
        "route",
        "service",
        "shown",
        "with_links",
    )

    def __init__(
        self,
        service: Service,
        route: Route,
        request: Request,
        now_ms: int,
        principal: Principal | None,
        ids: dict[str, Any],
    ) -> None:
        self.service = service
        self.route = route
        self.request = request
        self.now_ms = now_ms
        self.ids = ids
        self.with_links = True
        self.query: Any = None
        self.body: Any = None
        self.shown: Any = None
        self.keep: Keep | None = None
        self.concerned: tuple[Concerned, ...] = ()
        self._principal = principal

    @property
    def is_anonymous(self) -> bool:
        """Whether the call has no caller: its route has no access control, or lets calls without a token pass."""
        return self._principal is None

    @property
    def principal(self) -> Principal:
        """The caller. Only anonymous calls have none."""
        assert self._principal is not None
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self._principal = principal

    def concern(
        self,
        owner: bytes,
        type: PrimaryTarget | None = None,
        id: str | None = None,
        name: str | None = None,
    ) -> None:
        """Say that the call has an entry in the audit log of an owner; the first word about an owner counts.

        Not before the caller may act there: nobody may write into the log of others by calls that are refused.
        """
        self.concerned += (Concerned(owner, type, id, name),)

    @property
    def stamp(self) -> Stamp | None:
        """What is passed to the actor with the message, so that it keeps the response."""
        return None if self.keep is None else self.keep.stamp

    def keeping(self, response: Response) -> Callable[[Any], None] | None:
        """What keeps a response with the writes of a batch, if the call has a key."""
        return None if self.keep is None else partial(self.keep.add, response)

    @property
    def is_backlog(self) -> bool:
        """Whether the call waits in the backlog lane. Known once its query is decoded."""
        return self.route.backlog_handler is not None and self.query is not None and bool(self.query.backlog)

    @property
    def origin(self) -> Origin | None:
        """Who workflows are told to have caused their runs: the run of another one, or the caller."""
        return self.request.origin or self.principal.origin

    @property
    def application(self) -> bytes:
        """The application of the path."""
        id: bytes = self.ids["application"]
        return id

    @property
    def if_match(self) -> str | None:
        """The entity tag in `If-Match`, None if it was not sent."""
        return self.request.header(b"if-match")
