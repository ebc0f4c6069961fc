"""One call on its way through the edge: what was found out about it, and what the edge offers to its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from trunkline.actors.authority import Principal
    from trunkline.actors.runtime.ref import Ref
    from trunkline.actors.runtime.system import System
    from trunkline.actors.values.structs import Message
    from trunkline.http.calls.auth import Tokens
    from trunkline.http.calls.logins import LoginGuard
    from trunkline.http.calls.request import Request
    from trunkline.http.calls.route import Route


class Service(Protocol):
    """What the edge offers to handlers. The dispatcher is the one that there is."""

    system: System
    tokens: Tokens
    logins: LoginGuard
    token_ttl_s: int

    def scopes_of(self, operation: str) -> frozenset[str]:
        """The scopes of which a token needs one for an operation."""
        ...

    def check_fences(self, call: Call) -> None:
        """Raise where the call is not within the token's reach."""
        ...

    def ref(self, call: Call) -> Ref:
        """The actor that the row addresses."""
        ...

    def message(self, call: Call, message: type[Message]) -> Message:
        """A message whose fields come from the call. `message` is one of those that the row names."""
        ...

    async def read(self, call: Call, message: type[Message]) -> Any:
        """Answer a reading message whose fields come from the call."""
        ...

    async def read_message(self, message: Message) -> Any:
        """Answer a reading message."""
        ...


class Call:
    """A matched, authenticated, parsed call.

    `ids` are the values of the path's placeholders by name (`application` for `{applicationId}`): ids are raw bytes,
    names are text. Operations about the current user have `user` as well. Messages take their fields from here by name
    (`fields.py`).
    """

    __slots__ = (
        "_principal",
        "body",
        "ids",
        "links",
        "now_ms",
        "query",
        "request",
        "route",
        "service",
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
        self.links = True
        self.query: Any = None
        self.body: Any = None
        self._principal = principal

    @property
    def principal(self) -> Principal:
        """Who calls. Only routes without access control have none."""
        assert self._principal is not None
        return self._principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self._principal = principal

    @property
    def application(self) -> bytes:
        """The application of the path."""
        id: bytes = self.ids["application"]
        return id

    @property
    def if_match(self) -> str | None:
        """The revision that the caller means to change."""
        return self.request.header(b"if-match")
