"""Buttons that a workflow lets be pressed later, and presses that are cancelled before: each is done once, or is not.

A call presses the button `plan`, whose run plans a press of the button `do`, whose run writes a row. The button
`cancel` cancels a press, and writes whether it was still to come: then it is never done, else it was.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

from tests.simulation.faults import Clock
from tests.simulation.life import Life
from tests.simulation.model import Broken
from tests.simulation.part import TIMED_FROM, Part
from tests.simulation.site import Site
from tests.simulation.world import World
from tests.simulation.written import Written, create_flow, until

_SLACK_S: Final = 100.0
_EARLY_MS: Final = 5
_DELAYS_S: Final = (0, 3, 60, 400, 3000)


class Planned:
    """A press that was asked for at `begun_s`, when the clock had been set `sets` times."""

    def __init__(self, name: str, seconds: int, begun_s: float, sets: int) -> None:
        self.name = name
        self.seconds = seconds
        self.begun_s = begun_s
        self.sets = sets
        self.is_sure = False
        self.answered_s = 0.0
        self.is_cancelled: bool | None = False
        """None: perhaps."""


class Presses:
    """All of them. `excused` are those whose rows a failed commit may have cost."""

    def __init__(self) -> None:
        self.written = Written(("what", "name", "was"))
        self.path = ""
        self.all: dict[str, Planned] = {}
        self.excused: set[str] = set()
        self.life: Life | None = None
        self.life_s = 0.0


async def plan(world: World, chance: Random) -> None:
    presses, clock = world.of(Presses), world.of(Clock)
    seconds, name = chance.choice(_DELAYS_S), f"press {world.unique()}"
    planned = Planned(name, seconds, world.virtual.now_s, clock.sets)
    presses.all[name] = planned
    payload = {"name": name, "seconds": seconds}
    answer = await world.call("POST", presses.path, {"key": "plan", "payload": payload}, chance=chance)
    if answer is not None and answer.status == 200:
        planned.is_sure, planned.answered_s = True, world.virtual.now_s


async def cancel(world: World, chance: Random) -> None:
    presses = world.of(Presses)
    known = [each for each in presses.all.values() if each.is_sure and each.is_cancelled is False][-4:]
    if not known:
        return
    planned = chance.choice(known)
    planned.is_cancelled = None
    body = {"key": "cancel", "payload": {"name": planned.name}}
    answer = await world.call("POST", presses.path, body, chance=chance)
    if answer is not None and answer.status == 200:
        planned.is_cancelled = True


async def prepare(world: World) -> None:
    presses = world.of(Presses)
    written = presses.written
    await written.create(world, "presses")
    button = {"type": "virtualButton", "key": "do", "meta": {"id": "do"}, "outputIds": [["row"]]}
    target = await create_flow(world, "do", [button], [written.node("row", "done", "{{data.name}}", "")])
    triggers = [
        {"type": "virtualButton", "key": key, "meta": {"id": key}, "outputIds": [[key]]}
        for key in ("plan", "cancel")
    ]
    names = {"triggerWorkflowId": target, "triggerVirtualButtonId": "do", "runIdTemplate": "{{data.name}}"}
    config = {**names, "secondsTemplate": "{{data.seconds}}", "payloadTemplate": '{"name": "{{data.name}}"}'}
    nodes = [
        {
            "id": "plan",
            "type": "WorkflowTriggerNode",
            "config": {"behavior": "schedule", **config},
            "outputIds": [[]],
        },
        {
            "id": "cancel",
            "type": "WorkflowTriggerNode",
            "config": {
                "behavior": "cancel",
                "runIdTemplate": "{{data.name}}",
                "resultPath": "data.result",
            },
            "outputIds": [["told"]],
        },
        written.node("told", "cancelled", "{{data.name}}", "{{data.result.success}}"),
    ]
    id = await create_flow(world, "presses", triggers, nodes)
    presses.path = f"{world.of(Site).path}/flows/{id}/virtualButton"


async def look(world: World) -> None:
    """Wait until each press that is due was done, or cancelled."""
    if world.quota is not None:
        return  # there may be no room for a row
    presses = world.of(Presses)
    if presses.life is not world.life:
        presses.life, presses.life_s = world.life, world.virtual.now_s
    if presses.written.failures(world):
        presses.excused |= set(presses.all)

    async def missing() -> str:
        rows = await presses.written.rows(world)
        done = Counter(name for what, name, _ in rows if what == "done")
        told = {name: was == "true" for what, name, was in rows if what == "cancelled"}
        left = [each.name for each in presses.all.values() if _is_missing(world, each, done[each.name], told)]
        world.reached["a press was cancelled"] += any(told.values())
        return ", ".join(left)

    await until(world, missing, "presses")


def _is_missing(world: World, planned: Planned, done: int, told: dict[str, bool]) -> bool:
    """Whether a press is due that was neither done nor cancelled. Raises `Broken` where it was done wrongly."""
    presses, clock, name = world.of(Presses), world.of(Clock), planned.name
    was_cancelled = told.get(name)
    if done > 1 or (done and was_cancelled):
        raise Broken(f"{name} was done {done} times; it was {'' if was_cancelled else 'not '}cancelled")
    is_steady = planned.sets == clock.sets
    if done and is_steady and world.virtual.now_s < planned.begun_s + planned.seconds - _EARLY_MS / 1000:
        raise Broken(f"{name} was done after {world.virtual.now_s - planned.begun_s} of {planned.seconds} s")
    if done or not planned.is_sure or not is_steady or name in presses.excused:
        return False
    if was_cancelled or planned.is_cancelled is None:
        return False
    if planned.is_cancelled and was_cancelled is None:
        return True  # its run must have told of it
    began_s: float = max(planned.answered_s, presses.life_s, world.life.home_since_s)
    return bool(world.virtual.now_s > began_s + planned.seconds + _SLACK_S)


PART: Final = Part(prepare, {plan: 2, cancel: 1}, look, divided=True, divided_since=TIMED_FROM)
