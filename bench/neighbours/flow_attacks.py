"""Attacks by workflows: what they compute, copy, wait for and keep busy.

Each workflow has a button, whose throttle lets ten runs a second begin; calls of webhooks wait for the reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trunkline.bench.neighbours.attacker import Client
from trunkline.bench.neighbours.place import Place, callers
from trunkline.bench.session import Json

ITEMS = 90_000
"""Those that a script makes of nothing, because a body may not have so many."""
TEXT_CHARS = 500_000
BRANCHES = 100
KEYS = 18_000
"""Nearly all values that a body may have."""
DELAY_S = 55
WAITING = 1200
"""More calls than the server lets wait."""
HOOKS = 20
"""Webhooks, so that no throttle of one keeps calls away."""


def _node(id: str, type: str, config: Json, *after: str) -> Json:
    return {"id": id, "type": type, "config": config, "outputIds": [list(after)]}


def _concat(arguments: Sequence[str]) -> Json:
    config = {"sourceData": "", "method": "concat", "methodArgs": list(arguments), "resultPath": "data.r"}
    return _node("n", "StringNode", config)


def _pressed(*nodes: Json, payload: object = None) -> Callable[[Place], Awaitable[list[Client]]]:
    """Press the button of a workflow of these nodes."""

    async def prepare(place: Place) -> list[Client]:
        request = await place.tenant.button(place.application, *nodes, payload=payload)
        return callers(place, [request])

    return prepare


def _pressed_with_items(node: Json) -> Callable[[Place], Awaitable[list[Client]]]:
    """The same, with many items in `data.a`."""
    make = {"script": f"payload.data.a = Array({ITEMS}).fill(1);"}
    return _pressed(_node("make", "RawFunctionNode", make, node["id"]), node)


async def _waiting(place: Place) -> list[Client]:
    """Calls of webhooks whose workflow takes its time."""
    delay = _node("n", "DelayNode", {"delay": DELAY_S}, "r")
    reply = _node("r", "WebhookReplyNode", {"responseCodeTemplate": "200", "bodyTemplate": "late"})
    hooks = [await place.tenant.webhook(place.application, delay, reply) for _ in range(place.part(HOOKS))]
    return [Client(requests=[hooks[at % len(hooks)]]) for at in range(place.part(WAITING))]


async def _dry_runs(place: Place) -> list[Client]:
    """Dry runs, whose answers have the payload of each step."""
    nodes = [
        _node(f"n{number}", "MutateNode", {"rules": [{"type": "set", "destination": "data.n", "valueTemplate": "1"}]},
              *([f"n{number + 1}"] if number < 199 else []))
        for number in range(200)
    ]  # fmt: skip
    trigger = {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["n0"]]}
    path = await place.tenant.flow(place.application, trigger, nodes)
    body = {"data": {"text": "x" * TEXT_CHARS}}
    return callers(place, [place.tenant.request("POST", f"{path}/test", body)])


async def _meta(place: Place) -> list[Client]:
    """Workflows with many keys in their definitions, saved again and again."""
    path = await place.tenant.flow(place.application, _TIMER, [])
    body = {"nodes": [{**_node("n", "DebugNode", {}), "meta": {f"k{at}": at for at in range(KEYS)}}]}
    return callers(place, [place.tenant.request("PATCH", path, body)])


_TIMER: Json = {"type": "timer", "key": "t", "config": {"seconds": 3600}, "outputIds": [[]]}
_SEARCH: Any = "{{indexByKey data.a 'nope' 'a.b.c.d.e.f'}}"
_TITLE = "{{#if (length (titleCase data.t))}}x{{/if}}"
_KEYS = {f"key{at}": at for at in range(KEYS)}
_BRANCHES = [_node(f"b{at}", "DelayNode", {"delay": DELAY_S}) for at in range(BRANCHES)]
_FORK = _node("n", "DebugNode", {}, *(node["id"] for node in _BRANCHES))
_LOOP = _node("n", "LoopNode", {"loopSourcePath": "data.a", "currentItemPath": "working.item"})
_SCRIPT = "payload.data.o = {}; for (let i = 0; i < 200000; i++) payload.data.o['k' + i] = i;"

ATTACKS = (
    (
        "templates",
        f"a node with 480 searches of {ITEMS:,} items",
        _pressed_with_items(_concat([_SEARCH * 60] * 8)),
    ),
    (
        "texts",
        f"a node that capitalizes {TEXT_CHARS:,} characters 100 times",
        _pressed(_concat([_TITLE] * 100), payload={"t": "x y " * (TEXT_CHARS // 4)}),
    ),
    (
        "expressions",
        "a condition of 300 sums over long arrays",
        _pressed_with_items(
            _node(
                "n",
                "ConditionalNode",
                {"expression": " + ".join(["{{length (join data.a)}}"] * 300) + " > 1"},
            )
        ),
    ),
    (
        "branches",
        f"{BRANCHES} branches that wait with {KEYS:,} keys each",
        _pressed(_FORK, *_BRANCHES, payload=_KEYS),
    ),
    ("delays", f"runs that wait {DELAY_S} s", _pressed(_node("n", "DelayNode", {"delay": DELAY_S}))),
    ("loops", f"a loop over {ITEMS:,} items", _pressed_with_items(_LOOP)),
    ("scripts", "scripts that never end", _pressed(_node("n", "RawFunctionNode", {"script": "for (;;) {}"}))),
    (
        "results",
        "scripts whose results have 200,000 keys",
        _pressed(_node("n", "RawFunctionNode", {"script": _SCRIPT})),
    ),
    ("waiting", f"{WAITING:,} calls of webhooks that wait for replies", _waiting),
    ("dry runs", "dry runs of 200 steps with a long payload", _dry_runs),
    ("definitions", f"workflows with {KEYS:,} keys of meta", _meta),
)
