"""Admissions: a cache of the decision that a call is allowed, for calls that are repeated.

A device posts to one path with one token, all its life. The route, the caller, the checks of scopes and resource
access, and the actor to ask are the same each time, and finding them costs half of what the HTTP layer spends on a
state. An admission stores them. It is valid while the token is valid and nothing that the token depends on has
changed. If the decision depends on anything else (the address of the caller, the tags of a device, the gateway of a
device), no admission is stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trunkline.actors.access.authority import Principal
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.work import Work
from trunkline.actors.people.accounts.reach import filters_by_tags
from trunkline.http.calls.call import Call
from trunkline.http.calls.route import Route

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
    """The stored admissions of one server. At its bound the oldest is dropped for a new one."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._stored: dict[Key, Admission] = {}

    def find(self, method: str, path: str, principal: Principal) -> Admission | None:
        """The admission of such a call, None if none is stored."""
        return self._stored.get((method, path, principal))

    def add(self, method: str, path: str, admission: Admission) -> None:
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
