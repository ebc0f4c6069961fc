"""Admissions: the decision that a call is allowed, and a cache of it for calls that are repeated.

A device posts to one path with one token, all its life. The route, the caller, the checks of scopes and resource
access, and the actor to ask are the same each time, and finding them costs half of what the HTTP layer spends on a
state. An admission stores them. It is valid while the token is valid and nothing that the token depends on has
changed. If the decision depends on anything else (the address of the caller, the tags of a device, the gateway of a
device), no admission is stored.

Owns all of that decision: the route, the caller, the scope and the access to the resource. Does not own what a token
is (`auth.py`), nor which records give access (`access.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trunkline.actors.access.authority import Principal
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import Work
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.store_errors import StoreError
from trunkline.actors.people.accounts.reach import filters_by_tags
from trunkline.actors.people.accounts.scopes import USER_AREAS
from trunkline.http.calls.access import check_resource_access
from trunkline.http.calls.auth import check_scope
from trunkline.http.calls.call import Call, Service
from trunkline.http.calls.errors import MethodNotAllowed
from trunkline.http.calls.path_parameters import fits
from trunkline.http.calls.request import Request
from trunkline.http.calls.route import Route
from trunkline.http.calls.route_table import RouteMatch, RouteTable
from trunkline.http.wire.request_context import note_work

Key = tuple[str, str, Principal]
"""Method, path as it was sent, and caller. A principal is equal only to itself; after a revocation it is replaced by
a new one."""


class Admission(NamedTuple):
    """A call that is allowed: its route, its caller, and the values of its path parameters.

    `principal` is None if the route has no access control. `ref` is the actor that is asked, None for a read, a
    handler, or an actor that the call creates. `work` says for the watchdog of the loop what the call is.
    """

    route: Route
    principal: Principal | None
    ids: dict[str, Any]
    ref: Ref | None
    work: Work


def work_of(route: Route, principal: Principal | None, ids: dict[str, Any]) -> Work:
    """What a call is, and for whom."""
    application, payer, bearer = ids.get("application"), ids.get("org"), None
    if principal is not None:
        application = application or principal.application_id
        payer = payer or principal.user_id
        id = principal.device_id or principal.token_id or principal.user_id or principal.application_id
        bearer = principal.kind if id is None else f"{principal.kind} {id.hex()}"
    return Work("call", route.operation, application, bearer, payer=payer)


def work_by(caller: Principal) -> Work:
    """A call of which only the caller is known."""
    return Work("call", "", caller.application_id, payer=caller.user_id)


class CallTemplate:
    """What calls that differ only in their body have in common. Made by `Dispatcher.make_template`.

    `fields` are the fields of their messages except the body and, if `needs_now`, the time. `call` is needed to
    build their responses; it is None if the response only says that the call succeeded.
    """

    __slots__ = ("admission", "call", "fields", "needs_now")

    def __init__(
        self, admission: Admission, call: Call | None, fields: dict[str, Any], *, needs_now: bool
    ) -> None:
        self.admission = admission
        self.call = call
        self.fields = fields
        self.needs_now = needs_now


class Admissions:
    """The admissions of one server. At `admission_cache_length_max` the oldest stored one is dropped for a new one."""

    def __init__(self, service: Service, table: RouteTable) -> None:
        self._service = service
        self._table = table
        self._revocations = service.system.revocations
        self._length_max = service.system.limits.admission_cache_length_max
        self._stored: dict[Key, Admission] = {}

    def caller(self, authorization: bytes | None) -> Principal | None:
        """Who calls; None for a call without a valid token, or if that cannot be read: the dispatcher says why."""
        try:
            return self._service.tokens.authenticate(authorization)
        except (DomainError, StoreError):
            return None

    def find(self, method: str, path: str, caller: Principal) -> Admission | None:
        """The stored admission of such a call; None if none is stored."""
        return self._stored.get((method, path, caller))

    def find_by_token(self, method: str, path: str, authorization: bytes | None) -> Admission | None:
        """The same; also None if the token is not valid."""
        caller = self.caller(authorization)
        return None if caller is None else self.find(method, path, caller)

    def is_valid(self, admission: Admission) -> bool:
        """Whether an admission that was found earlier is still valid."""
        principal = admission.principal
        if self._revocations.shared is not None:
            self._revocations.follow()
        if principal is None or principal.revoked:
            return False
        return principal.expires_ms is None or self._service.system.clock.wall_ms() < principal.expires_ms

    def find_route(self, request: Request, match: RouteMatch | None) -> tuple[Route, list[str]]:
        """The route of a request, and the values of its path parameters. Raises `NotFound` or `MethodNotAllowed`.

        `match` (of the route table) is passed if the caller has looked it up already.
        """
        match = match or self._table.match(request.path)
        if match is None:
            raise NotFound(f"There is nothing at {request.path[:200]}; `/docs` shows the API.")
        methods, values = match
        method = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
        route = methods.get(method)
        if route is None:
            if not all(map(fits, next(iter(methods.values())).path_parameters, values)):
                # A word where an id is expected is the name of an operation that this server does not have.
                raise NotFound(
                    f"There is nothing at {request.path[:200]}: this server has no such operation; "
                    "`/docs` shows the API."
                )
            taken = ", ".join(sorted(methods))
            read = methods.get("GET")
            allowed = taken if read is None or read.upgrades else ", ".join(sorted({*methods, "HEAD"}))
            raise MethodNotAllowed(
                f"{request.method} is not a method of this path; it takes {taken}.", allowed
            )
        return route, values

    def admit(self, route: Route, values: list[str], request: Request) -> Admission:
        """Authenticate the caller and check that the call is allowed. Raises `DomainError` if it is not.

        The admission is stored for calls that repeat this one.
        """
        principal = None
        note_work(work_of(route, None, {}))
        header = request.headers.get(b"authorization")
        if route.access != "none" and not (route.anonymous and header is None):
            principal = self._service.tokens.authenticate(header)
            note_work(work_of(route, principal, {}))
        admission = self.check(route, values, request, principal)
        self._store(request.method, request.path, admission)
        return admission

    def check(
        self, route: Route, values: list[str], request: Request, principal: Principal | None
    ) -> Admission:
        """Check that a caller may make a call. `values` are those of the path. Raises `DomainError` if not."""
        if principal is not None:
            check_scope(route, principal)
        ids = self._table.read_path(route, values)
        if route.area in USER_AREAS and principal is not None:
            ids["user"] = principal.user_id
        work = work_of(route, principal, ids)
        service = self._service
        check_resource_access(Call(service, route, request, service.system.clock.wall_ms(), principal, ids))
        ref = None if route.to is None or route.creates_actor else route.to.ref(ids)
        return Admission(route, principal, ids, ref, work)

    def _store(self, method: str, path: str, admission: Admission) -> None:
        """Store an admission if it also applies to later calls of the same method, path and caller."""
        principal, ids = admission.principal, admission.ids
        if principal is None or not admission.route.fast_path or admission.route.creates_actor:
            return
        if "row" in ids:
            return  # each row of a table has a path of its own: they would displace the calls that are repeated
        if principal.kind == "device" and (
            ids.get("device") != principal.device_id
            or principal.key.get("addressFilterType", "all") != "all"
            or filters_by_tags(principal.key)
        ):
            return
        if len(self._stored) >= self._length_max:
            del self._stored[next(iter(self._stored))]
        self._stored[method, path, principal] = admission
