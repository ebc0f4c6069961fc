"""What concerns all tenants of the server, for its operators."""

from __future__ import annotations

import msgspec

from trunkline.actors.core.runtime.loop_watch import LongTurn, LoopWatch
from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.core.values.timestamps import iso
from trunkline.http.calls.call import Call
from trunkline.http.calls.operators import check_operator
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.verbs import get


class LongTurnView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of the event loop over the limit."""

    time: IsoTime
    duration_ms: float
    cpu_ms: float
    collector_ms: float
    kind: str
    name: str
    detail: str | None = None
    application_id: Id | None = None
    owner_id: Id | None = None
    bearer: str | None = None


class LongTurns(View, frozen=True, kw_only=True):
    """The worst turns of the event loop of the last day, the longest first."""

    items: list[LongTurnView]
    count: int
    limit_ms: float
    longest_ms: float
    turns: int
    time: IsoTime


async def get_long_turns(call: Call) -> Response:
    """List the longest turns of the event loop: all tenants wait while one lasts."""
    system = call.service.system
    check_operator(system, call.principal)
    watch = system.component(LoopWatch)
    items = [_view(turn) for turn in watch.worst()]
    view = LongTurns(
        items=items,
        count=len(items),
        limit_ms=system.limits.loop_turn_ms_max,
        longest_ms=round(watch.longest_ns / 1e6, 3),
        turns=watch.turns,
        time=iso(system.clock.wall_ms()),
    )
    return json_response(call, 200, msgspec.to_builtins(view))


def _view(turn: LongTurn) -> LongTurnView:
    return LongTurnView(
        time=iso(turn.at_ms),
        duration_ms=turn.ms,
        cpu_ms=turn.cpu_ms,
        collector_ms=turn.gc_ms,
        kind=turn.kind,
        name=turn.name,
        detail=turn.detail or None,
        application_id=turn.application_id,
        owner_id=turn.owner_id,
        bearer=turn.bearer,
    )


ROUTES = (
    get(
        "/server/longTurns",
        "server.longTurns",
        "List the longest turns of the event loop, with what they were for",
        get_long_turns,
        LongTurns,
        area="user",
    ),
)
