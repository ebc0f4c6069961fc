"""What a device with a link remembers over its connections: its frames, and the commands that it has heard.

Owns the numbers and the form of its frames. Does not own its connections (`link_connection.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

import cbor2
import msgspec

from tests.simulation.determinism import START_MS
from tests.simulation.devices import Meter, heat_of
from tests.simulation.model import Change, Passing
from tests.simulation.world import World

_SESSIONS: Final = 1 << 53


@dataclass
class Frame:
    """A frame that is neither acknowledged nor refused. `passing` is its last one through the throttle.

    `is_repeated`: an earlier connection has sent it, so it may be stored already, and then no throttle counts it.
    """

    n: int
    data: bytes
    backlog: bool
    text: bool
    change: Change
    passing: Passing | None = None
    is_repeated: bool = False
    sent: tuple[int, int] = (0, 0)
    """The clock when it was sent last."""


class LinkDevice:
    """What a device remembers over its connections.

    `before` are the commands that were sent before its first link, which need not come. `finished` are those whose
    acknowledgement is stored: they must not come again.
    """

    def __init__(self, meter: Meter, chance: Random) -> None:
        self.meter = meter
        self.frames: list[Frame] = []
        """Those that were neither acknowledged nor refused, in the order of their numbers."""
        self.heard: set[str] = set()
        self.before: set[Any] | None = None
        self.finished: set[str] = set()
        self.begin_again(chance)

    def begin_again(self, chance: Random) -> None:
        """Forget everything, as a device that keeps nothing over its restart."""
        self.session, self.n = chance.randrange(_SESSIONS), 0
        self.was_refused = False
        self.acknowledged = {False: 0, True: 0}
        """The last frame that was acknowledged, of live ones and of backlogs."""
        self.frames.clear()

    def next_frame(self, world: World, chance: Random, *, text: bool) -> Frame:
        """A frame with one state or several, in one of its forms."""
        self.n += chance.choice((1, 1, 1, 5))
        numbers = [world.unique() for _ in range(chance.choice((1, 1, 2, 4)))]
        backlog = chance.random() < 0.35
        options: list[Any] = [{"backlog": True}] if backlog else []
        self.meter.past.update(numbers if backlog else ())
        times = [START_MS + number for number in numbers]
        columns = {"n": numbers, "heat": [heat_of(number) for number in numbers]}
        plain: list[Any]
        match chance.randrange(3):
            case 0 if len(numbers) == 1:
                plain = [1, self.n, times[0], {name: values[0] for name, values in columns.items()}]
            case 1:
                plain = [3, self.n, START_MS, numbers, columns]
            case _:
                rows = [list(row) for row in zip(times, *columns.values(), strict=True)]
                plain = [2, self.n, list(columns), rows]
        plain += options
        data = msgspec.json.encode(plain) if text else cbor2.dumps(plain)
        states = self.meter.states
        return Frame(
            self.n,
            data,
            backlog,
            text,
            Change([(states, time, n) for time, n in zip(times, numbers, strict=True)]),
        )
