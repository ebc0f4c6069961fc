"""People who follow the commands or the states of a device, are cut off, and come back with `Last-Event-ID`.

Whoever comes back has missed nothing and hears nothing twice. Of commands the order is that of the log.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec
import trio

from tests.simulation.devices import Fleet, Meter, commands_of
from tests.simulation.life import Life
from tests.simulation.model import Book, Broken
from tests.simulation.part import Part
from tests.simulation.site import surely
from tests.simulation.world import World

LISTENERS_MAX: Final = 6
ANSWERS_S: Final = 60.0
"""A stream begins by then: no connection stalls for so long, and no process is away for so long."""
COMMENT_S: Final = 3.0
"""A comment at least is sent every two seconds."""
_COMMANDS: Final = "commandStream"


class Listener:
    """Somebody at a stream. `before` are the things that were sent before the stream was open, or that it may miss."""

    def __init__(self, meter: Meter, resource: str) -> None:
        self.meter = meter
        self.resource = resource
        self.heard: list[Any] = []
        self.before: set[Any] | None = None
        self.last_id: str | None = None
        self.life: Life | None = None
        """The life in which it listens; None while it is cut off."""
        self.asks = False
        """It has asked for the stream, and has no answer yet: the connection may have stalled."""

    @property
    def book(self) -> Book:
        return self.meter.commands if self.resource == _COMMANDS else self.meter.states

    async def listen(self, world: World, life: Life, pieces: int) -> None:
        """Listen until so many pieces have come, or the stream ends."""
        if self.last_id is None:
            self.before = None  # whoever heard nothing cannot say from where to go on
        headers = {} if self.last_id is None else {"last-event-id": self.last_id}
        self.asks = True
        try:
            answer = await world.call("GET", f"{self.meter.path}/{self.resource}", headers=headers)
        finally:
            self.asks = False
        if answer is None or answer.stream is None:
            self.life = None
            return
        if headers:
            world.reached["a stream came back"] += 1
        try:
            for _ in range(pieces):
                piece = await answer.stream.next()
                if life.over or piece is None:
                    break
                self._take(world, piece.decode())
        finally:
            answer.stream.close()
            if self.life is life:
                self.life = None

    def _take(self, world: World, piece: str) -> None:
        if self.before is None:
            self.before = set(self.book.things)
        for frame in piece.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
            self.last_id = fields.get("id", self.last_id)
            if fields.get("event") == "reset":
                world.reached["a stream was told that it missed something"] += 1
                self.before |= set(self.book.things)
            elif "event" in fields:
                self._hear(fields)
                world.note(f"{self.resource} of {self.meter.id[-4:]}: {self.heard[-1]}")

    def _hear(self, fields: dict[str, str]) -> None:
        data = msgspec.json.decode(fields["data"])
        name = data["name"] if self.resource == _COMMANDS else data["data"]["n"]
        if name in self.heard:
            raise Broken(f"{self.resource} of {self.meter.id[-4:]}: {name} is sent twice")
        self.heard.append(name)


class Listeners:
    """All of them, also those that were cut off."""

    def __init__(self) -> None:
        self.all: list[Listener] = []


async def listen(world: World, chance: Random) -> None:
    """Somebody new comes, or one who was cut off comes back."""
    listeners, meter = world.of(Listeners), world.of(Fleet).one(chance)
    away = [each for each in listeners.all if each.life is None or each.life is not world.life]
    if away and (chance.random() < 0.6 or len(listeners.all) >= LISTENERS_MAX):
        listener = chance.choice(away)
    elif meter is not None and len(listeners.all) < LISTENERS_MAX:
        listener = Listener(meter, chance.choice((_COMMANDS, "stateStream")))
        listeners.all.append(listener)
    else:
        return
    listener.life = world.life
    world.callers.start_soon(listener.listen, world, world.life, chance.choice((3, 8, 20, 10**6)))


async def look(world: World) -> None:
    """Whoever listens has heard all that is stored, but what may have come before."""
    fleet, listeners = world.of(Fleet), world.of(Listeners)
    with trio.move_on_after(ANSWERS_S) as waiting:
        while any(each.asks for each in listeners.all):  # noqa: ASYNC110 - a moment of all of them
            await trio.sleep(1)
    if waiting.cancelled_caught:
        raise Broken(f"a stream was not begun after {ANSWERS_S:.0f} seconds")
    await trio.sleep(COMMENT_S)
    has_stalled = world.life.network.stalled_s + COMMENT_S > trio.current_time()
    listeners.all = [each for each in listeners.all if surely(fleet.records, each.meter.id)]
    for listener in listeners.all:
        if listener.before is None:
            continue
        title = f"{listener.resource} of {listener.meter.id[-4:]}"
        stored = set(listener.book.sure().values())
        strange = [name for name in listener.heard if name not in stored]
        if strange:
            raise Broken(f"{title}: {strange} were sent, and are not stored")
        if listener.life is world.life:
            names = {state for name in listener.before for state in listener.book.thing(name).states}
            missing = stored - names - set(listener.heard) - listener.meter.past
            if missing and not has_stalled:
                raise Broken(f"{title}: {sorted(missing, key=repr)} are stored, and were not sent")
        if listener.resource == _COMMANDS:
            order = await commands_of(world, listener.meter)
            if [name for name in order if name in listener.heard] != listener.heard:
                raise Broken(f"{title}: {listener.heard} were sent, the order of the log is {order}")


async def prepare(_world: World) -> None:
    """Nobody listens yet."""


PART: Final = Part(prepare, {listen: 5}, look, divided=True)
