"""Admissions: what calls that come again and again were found to be, so that it is found out once.

A device posts to one path with one token, all its life. Which row that is, who calls, whether the scopes and
the fences let it through, and which actor it is for comes out the same each time, and costs half of what the
edge spends on a state. An admission remembers it. It holds for as long as the token does and nothing that the token
depends on has changed; where the answer depends on anything else (the address of the caller, the tags of a device, who
is whose gateway) no admission is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trunkline.actors.accounts.reach import filters_by_tags
from trunkline.actors.authority import Principal
from trunkline.actors.runtime.ref import Ref
from trunkline.http.calls.call import Call
from trunkline.http.calls.route import Route

Key = tuple[str, str, Principal]
"""Method, path as it was sent, and who calls. A principal is equal only to itself, and is made anew when it was
revoked."""


class Admission(NamedTuple):
    """A call that may be handled: its row, who calls, and the values of its path.

    `principal` is None where the row has no access control. `ref` is the actor that is asked, None for a read, a
    handler, or an actor that the call creates.
    """

    route: Route
    principal: Principal | None
    ids: dict[str, Any]
    ref: Ref | None


class Repeat:
    """Calls that differ in nothing but their body: what `Dispatcher.recall` found out about them once.

    `fields` are what their messages are made of beside the body and, where it `takes_now`, the time; `call` is for
    the shape of their answers, None where the answer is only that they succeeded.
    """

    __slots__ = ("admission", "call", "fields", "takes_now")

    def __init__(
        self, admission: Admission, call: Call | None, fields: dict[str, Any], *, takes_now: bool
    ) -> None:
        self.admission = admission
        self.call = call
        self.fields = fields
        self.takes_now = takes_now


class Admissions:
    """The admissions that one server keeps, the oldest dropped for the newest."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._kept: dict[Key, Admission] = {}

    def find(self, method: str, path: str, principal: Principal) -> Admission | None:
        """The admission of such a call, None where there is none."""
        return self._kept.get((method, path, principal))

    def keep(self, method: str, path: str, admission: Admission) -> None:
        """Remember an admission, where the like of its call will be admitted for the same reasons."""
        principal, ids = admission.principal, admission.ids
        if principal is None or not admission.route.hot or admission.route.creates:
            return
        if "row" in ids:
            return  # one path for each row of a table: they would drive out those that do come again
        if principal.kind == "device" and (
            ids.get("device") != principal.device_id
            or principal.key.get("addressFilterType", "all") != "all"
            or filters_by_tags(principal.key)
        ):
            return
        if len(self._kept) >= self._length_max:
            del self._kept[next(iter(self._kept))]
        self._kept[method, path, principal] = admission
