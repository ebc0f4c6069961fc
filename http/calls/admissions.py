"""Passes: what calls that come again and again were found to be, so that it is found out once.

A device posts to one path with one token, all its life. Which row that is, who calls, whether the scopes and
the fences let it through, and which actor it is for comes out the same each time, and costs half of what the
edge spends on a state. A pass remembers it. It holds for as long as the token does and nothing about authority
has changed; where the answer rests on anything else (the address of the caller, the tags of a device, who is
whose gateway) no pass is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trunkline.actors.authority import Principal, chooses_by_tags
from trunkline.actors.runtime.actor import Ref
from trunkline.http.calls.call import Call
from trunkline.http.calls.route import Route

Key = tuple[str, str, Principal]
"""Method, path as it was sent, and who calls. A principal is equal only to itself, and made anew with each
change of authority."""


class Pass(NamedTuple):
    """What was found out, at which epoch of authority. `ref` is the actor that is asked, None for a read."""

    epoch: int
    principal: Principal
    route: Route
    application: bytes | None
    device: bytes | None
    table: bytes | None
    ref: Ref | None


class Repeat:
    """Calls that differ in nothing but their body: what `Dispatcher.recall` found out about them once.

    `fields` are what their messages are made of beside the body and, where it `takes_now`, the time; `call` is for
    the shape of their answers, None where the answer is only that they succeeded.
    """

    __slots__ = ("call", "fields", "known", "takes_now")

    def __init__(self, known: Pass, call: Call | None, fields: dict[str, Any], *, takes_now: bool) -> None:
        self.known = known
        self.call = call
        self.fields = fields
        self.takes_now = takes_now


class Passes:
    """The passes of one server, the oldest dropped for the newest."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._passes: dict[Key, Pass] = {}
        self._epoch = -1

    def find(self, method: str, path: str, principal: Principal) -> Pass | None:
        """The pass of such a call, None where there is none."""
        return self._passes.get((method, path, principal))

    def keep(self, call: Call, ref: Ref | None, epoch: int) -> None:
        """Remember an admitted call, where its like will be admitted for the same reasons. `epoch` is that of
        authority."""
        principal = call.principal
        if call.row is not None:
            return  # one path for each row of a table: they would drive out those that do come again
        if principal.kind == "device" and (
            call.device != principal.device_id
            or principal.key.get("addressFilterType", "all") != "all"
            or chooses_by_tags(principal.key)
        ):
            return
        if self._epoch != epoch:
            self._passes.clear()
            self._epoch = epoch
        if len(self._passes) >= self._length_max:
            del self._passes[next(iter(self._passes))]
        key = (call.request.method, call.request.path, principal)
        self._passes[key] = Pass(epoch, principal, call.route, call.application, call.device, call.table, ref)
