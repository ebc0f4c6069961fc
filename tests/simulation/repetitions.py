"""Calls with an `Idempotency-Key` that are sent again, in the same life or in a later one: they are done once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.simulation.model import Broken, Change, Throttle
from tests.simulation.part import Part
from tests.simulation.site import nothing
from tests.simulation.world import WAS_DONE, World

_LATEST: Final = 8


@dataclass
class Repeatable:
    """A call with a key, and its answer; None if it had none, or was refused."""

    change: Change
    path: str
    body: Any
    key: dict[str, str]
    throttle: Callable[[], Throttle] | None = None
    """The throttle that it counts against: in each life another one."""
    answer: bytes | None = None
    on_sent: Callable[[], None] = lambda: None
    """Called when it was sent again, and may have been done then."""


class Repetitions:
    """The calls that were made, the latest last."""

    def __init__(self) -> None:
        self.made: list[Repeatable] = []


async def repeat(world: World, chance: Random) -> None:
    """Send a call again whose fate is known: it was answered, or a later life has shown what became of it."""
    made = world.of(Repetitions).made[-_LATEST:]
    known = [
        each
        for each in made
        if each.answer is not None or (each.change.became is not None and each.change.answered)
    ]
    if not known:
        return
    call = chance.choice(known)
    if not all(book.takes_new for book, _, _ in call.change.targets):
        return
    if call.answer is None and not call.change.became:
        await _for_the_first_time(world, call, chance)
        return
    answer = await world.call("POST", call.path, call.body, headers=call.key)
    if answer is None or answer.status in (401, 404):
        return  # the device is gone
    if answer.status == 500 and answer.body["message"].startswith(WAS_DONE):
        return
    if answer.status >= 300 or "idempotent-replayed" not in answer.headers:
        raise Broken(
            f"{call.path}: the call with the key {call.key} was stored, and its repetition is {answer}"
        )
    if call.answer not in (None, answer.raw):
        raise Broken(f"{call.path}: the repetition with the key {call.key} has another answer: {answer}")
    world.reached["a repetition got the first answer"] += 1


async def _for_the_first_time(world: World, call: Repeatable, chance: Random) -> None:
    """What was not stored is done by the repetition."""
    call.change.again()
    throttle = None if call.throttle is None else call.throttle()
    passing = None if throttle is None else throttle.begin(world.virtual.monotonic_s())
    answer = await world.change(call.change, "POST", call.path, call.body, headers=call.key, chance=chance)
    call.on_sent()
    if throttle is not None and passing is not None:
        throttle.end(passing, world.virtual.monotonic_s(), passed=None)
    if answer is not None and answer.status < 300:
        if "idempotent-replayed" in answer.headers:
            raise Broken(f"{call.path}: nothing was stored for {call.key}, and an answer to it is")
        call.answer = answer.raw
        world.reached["a repetition was the first to be stored"] += 1


PART: Final = Part(nothing, {repeat: 5}, nothing, divided=True)
