"""What concerns all tenants of the server, for its operators."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from trunkline.actors.core.records.places import Places
from trunkline.actors.core.runtime.loop_watch import WORST_MAX, LongTurn, LoopWatch
from trunkline.actors.core.runtime.peers import process_name
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.structs import View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.core.values.timestamps import iso
from trunkline.http.calls.call import Call
from trunkline.http.calls.operators import check_operator
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.verbs import get

LONG_TURNS: Final = "longTurns"
"""The name of what each process tells the others (`System.tells`)."""


class LongTurnView(View, frozen=True, kw_only=True, omit_defaults=True):
    """A turn of the event loop over the limit. `process` held it, where there are several partitions."""

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
    process: str | None = None


class LongTurns(View, frozen=True, kw_only=True, omit_defaults=True):
    """The worst turns of the event loop of the last day, the longest first.

    With several partitions, each owner has a loop. Those that did not answer in time are in `missing`.
    """

    items: list[LongTurnView]
    count: int
    limit_ms: float
    longest_ms: float
    turns: int
    time: IsoTime
    missing: list[str] | None = None


class ToldTurns(NamedTuple):
    """What a process tells the others of its event loop."""

    worst: list[LongTurn]
    longest_ns: int
    turns: int


async def get_long_turns(call: Call) -> Response:
    """List the longest turns of the event loop: all tenants wait while one lasts."""
    system = call.service.system
    check_operator(system, call.principal)
    told: dict[str | None, ToldTurns | None] = {None: await own_turns(system)}
    if system.peers is not None:
        others = await system.peers.ask_each(LONG_TURNS)
        told = {process_name(number): turns for number, turns in others.items()}
        told[process_name(system.component(Places).own)] = await own_turns(system)
    known = [each for each in told.values() if each is not None]
    items = [_view(turn, process) for process, each in told.items() if each for turn in each.worst]
    items = sorted(items, key=lambda item: item.duration_ms, reverse=True)[:WORST_MAX]
    view = LongTurns(
        items=items,
        count=len(items),
        limit_ms=system.limits.loop_turn_ms_max,
        longest_ms=round(max(each.longest_ns for each in known) / 1e6, 3),
        turns=sum(each.turns for each in known),
        time=iso(system.clock.wall_ms()),
        missing=sorted(process or "" for process, each in told.items() if each is None) or None,
    )
    return json_response(call, 200, msgspec.to_builtins(view))


async def own_turns(system: System) -> ToldTurns:
    """The turns of the event loop of this process."""
    watch = system.component(LoopWatch)
    return ToldTurns(list(watch.worst()), watch.longest_ns, watch.turns)


def _view(turn: LongTurn, process: str | None) -> LongTurnView:
    return LongTurnView(
        process=process,
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
