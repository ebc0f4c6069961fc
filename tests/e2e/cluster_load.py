"""Clients of all machines, by REST, the device link and MQTT, and what they were promised.

Owns what each client sends, and what it was told. Does not own how that is compared with what is stored
(`verdict.py`), nor what happens to the machines.

What is compared: each call with a key has one effect. What a link or a client of MQTT sends has one as well, unless a
message with QoS 1 comes again and its states have no time. What a client sends one after the other is in this order.
Nobody reads what is older than what was acknowledged, or read by somebody else, before he asked.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Final

import trio
from trio_websocket import ConnectionClosed, HandshakeError

from tests.e2e.crash_load import read_states
from tests.e2e.lives import Front
from tests.e2e.mqtt_crash_clients import LEAVING, Gone, Publisher
from tests.e2e.registers import UNKNOWN, Register, connection_of
from tests.e2e.stubborn import COLUMNS, Stubborn, calls, read_back, sent_marks
from tests.e2e.test_link_crash import Device
from tests.e2e.verdict import Verdict
from tests.patience import PATIENCE_S
from trunkline.bench.errors import WireError
from trunkline.bench.session import Session
from trunkline.http.mqtt.packets import IMPLEMENTATION_SPECIFIC_ERROR, V3_1_1, V5

PAUSE_S: Final = 0.02
"""Between what a client sends: the cores are for those who take over."""
CONNECT_S: Final = 3.0
"""So long a link waits for an answer before it connects again."""
CHAPTER: Final = 210
"""Calls of a client about one application."""


class Client(ABC):
    """A client of one machine. `done` is how much was acknowledged to it."""

    def __init__(self, name: str, front: Front) -> None:
        self.name = name
        self.front = front

    @property
    @abstractmethod
    def done(self) -> int:
        """How much was acknowledged."""

    @abstractmethod
    async def run(self, stopping: trio.Event) -> None:
        """Send until it is stopping, and until all is acknowledged then."""

    async def check(self, verdict: Verdict) -> None:
        """Compare what was acknowledged with what is stored, if anything is."""
        return


class Source(Client):
    """A client that writes numbers to a device of its own, one higher than the other."""

    def __init__(self, name: str, front: Front, device: str) -> None:
        super().__init__(name, front)
        self.device = device
        self.seen = -1.0
        """The highest that somebody has read."""

    @property
    @abstractmethod
    def newest(self) -> float:
        """The highest that was acknowledged; -1: none was."""

    @property
    @abstractmethod
    def numbers(self) -> list[int]:
        """All that were acknowledged when it has ended, in order. The others were refused, and are not stored."""

    @property
    def once(self) -> set[int]:
        """Those that may not come again: all of them."""
        return {*self.numbers}

    async def check(self, verdict: Verdict) -> None:
        session = Session(self.front.url, token=self.front.token, timeout_s=PATIENCE_S)
        stored = [int(json.loads(data)["temp"]) for _, data in await read_states(session, self.device)]
        session.close()
        verdict.compare(self.name, self.numbers, stored, self.once)


class Restful(Client):
    """A client that makes calls with keys, and knows when each was acknowledged."""

    def __init__(self, name: str, front: Front, acks: list[float], random: Random) -> None:
        super().__init__(name, front)
        self.stubborn = _stubborn(name, random)
        self._acks = acks

    @property
    def done(self) -> int:
        return len(self.stubborn.answers)

    async def call(self, path: str, body: Any) -> Any:
        """Make a call until it is answered."""
        self.stubborn.add([(path, body)])
        await self.stubborn.run(self.front)
        self._acks.append(trio.current_time())
        await trio.sleep(PAUSE_S)
        return json.loads(self.stubborn.answers[-1])


def _stubborn(name: str, random: Random) -> Stubborn:
    made = Stubborn(name, [], random)
    # The call was done, but its entry in the audit log was not stored: with its key it has its answer again.
    made.again |= {500}
    made.pause_s = PAUSE_S
    return made


class Counting(Source, Restful):
    """Single states without a time, each with a key."""

    def __init__(self, name: str, front: Front, device: str, acks: list[float], random: Random) -> None:
        Restful.__init__(self, name, front, acks, random)
        self.device = device
        self.seen = -1.0

    @property
    def newest(self) -> float:
        return self.done - 1.0

    @property
    def numbers(self) -> list[int]:
        return [*range(self.done)]

    async def run(self, stopping: trio.Event) -> None:
        while not stopping.is_set():
            await self.call(f"{self.device}/state", {"data": {"temp": self.done}})


class Writing(Restful):
    """Calls of all kinds, in chapters, each of which has an application and is short enough to be read in one call."""

    def __init__(self, name: str, front: Front, acks: list[float], random: Random) -> None:
        super().__init__(name, front, acks, random)
        self._chapters: list[tuple[tuple[str, str, str], int]] = []

    async def run(self, stopping: trio.Event) -> None:
        while not stopping.is_set():
            application = await self._made("/applications", name="chapter")
            attributes = [{"name": "label", "dataType": "string"}]
            device = await self._made(f"{application}/devices", name="pump", attributes=attributes)
            paths = application, device, await self._made(f"{application}/data-tables", columns=COLUMNS)
            made = 0
            for path, body in calls(paths, 0, CHAPTER):
                if stopping.is_set():
                    break
                await self.call(path, body)
                made += 1
            self._chapters.append((paths, made))

    async def _made(self, path: str, **fields: Any) -> str:
        """Create a record, and more where nobody knows whether one was: such calls take no keys. Returns its path."""
        async with connection_of(self.front) as connection:
            for number in count():
                body = json.dumps({"name": f"rows {number}", **fields}).encode()
                with suppress(WireError):
                    answer = await connection.request("POST", path, body)
                    if answer.status == 201:
                        return f"{path}/{json.loads(answer.body)['id']}"
                    assert answer.status in UNKNOWN, (answer.status, answer.body)
                await trio.sleep(PAUSE_S)
        raise AssertionError

    async def check(self, verdict: Verdict) -> None:
        for paths, made in self._chapters:
            stored, counted = await read_back(self.front, paths)
            verdict.count(f"{self.name} {paths[0]}", sent_marks(1, made), stored)
            states = sum(number % 7 < 2 for number in range(made))
            verdict.count(f"{self.name} {paths[0]}", Counter(payloads=states), Counter(payloads=counted))


class Staying(Source):
    """A device with a peer that stays connected, and sends one state after the other."""

    gone: tuple[type[Exception], ...]
    """How the peer is told that its connection has ended."""

    def __init__(self, name: str, front: Front, device: str, peer: Any) -> None:
        super().__init__(name, front, device)
        self._peer = peer
        self._peer.pause_s = PAUSE_S

    @property
    def done(self) -> int:
        acknowledged: int = self._peer.acknowledged
        return acknowledged

    @property
    def newest(self) -> float:
        return float(self._peer.newest)

    async def run(self, stopping: trio.Event) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stay)
            await stopping.wait()
            nursery.cancel_scope.cancel()
        with trio.fail_after(PATIENCE_S):
            await self._finish()
        assert self.done == len(self.numbers)

    async def _stay(self) -> None:
        while True:
            with suppress(*self.gone):
                await self._live()
            await trio.sleep(PAUSE_S)

    @abstractmethod
    async def _live(self) -> None:
        """Be connected once, and send."""

    @abstractmethod
    async def _finish(self) -> None:
        """Send again what is not acknowledged."""


class Linked(Staying):
    """A device with a link: frames of all forms with times, or single states without."""

    gone = OSError, HandshakeError, ConnectionClosed

    def __init__(
        self, name: str, front: Front, device: str, token: str, random: Random, *, times: bool
    ) -> None:
        super().__init__(name, front, device, Device(device, token, random, times=times))
        self._peer.connect_s, self._peer.refusals = CONNECT_S, frozenset({"Overloaded"})

    @property
    def numbers(self) -> list[int]:
        return _without(range(self._peer.states), self._peer.refused)

    async def _live(self) -> None:
        await self._peer.run(self.front, task_status=trio.TASK_STATUS_IGNORED)

    async def _finish(self) -> None:
        await self._peer.finish(self.front, set())


class Publishing(Staying):
    """A device that publishes states: with times eight at once, or without times one at a time."""

    gone = (Gone,)

    def __init__(
        self, name: str, front: Front, device: str, login: dict[str, Any], random: Random, *, times: bool
    ) -> None:
        version = V3_1_1 if random.random() < 0.5 else V5
        peer = Publisher(device.rpartition("/")[2], version, login, random, is_device=True)
        super().__init__(name, front, device, peer)
        peer.leaving, peer.refusals, peer.times = LEAVING, frozenset({IMPLEMENTATION_SPECIFIC_ERROR}), times
        if not times:
            peer.under_way = 1

    @property
    def numbers(self) -> list[int]:
        return _without(range(len(self._peer.sent)), self._peer.refused)

    @property
    def once(self) -> set[int]:
        """All with a time, and all with QoS 2."""
        return {n for n, qos in enumerate(self._peer.sent) if self._peer.times or qos == 2}

    async def _live(self) -> None:
        await self._peer.run(self.front.mqtt_ports[0])

    async def _finish(self) -> None:
        await self._peer.run(self.front.mqtt_ports[0], is_last=True)


def _without(numbers: range, refused: Sequence[int]) -> list[int]:
    left_out = frozenset(refused)
    return [each for each in numbers if each not in left_out]


class Asking(Client):
    """A client that counts its own answers."""

    _done = 0

    @property
    def done(self) -> int:
        return self._done


class Reader(Asking):
    """It reads the newest number of each source in turn."""

    def __init__(self, name: str, front: Front, sources: Sequence[Source], verdict: Verdict) -> None:
        super().__init__(name, front)
        self._sources = sources
        self._verdict = verdict

    async def run(self, stopping: trio.Event) -> None:
        async with connection_of(self.front) as connection:
            number = 0
            while not stopping.is_set():
                source, is_composite = self._sources[number // 2 % len(self._sources)], number % 2 == 0
                number += 1
                least = max(source.newest, source.seen)
                path = f"{source.device}/{'compositeState' if is_composite else 'state?limit=1&start=1'}"
                with suppress(WireError):
                    answer = await connection.request("GET", path)
                    if answer.status == 200:
                        value = _number(json.loads(answer.body))
                        source.seen = max(source.seen, value)
                        self._verdict.saw(f"{self.name} of {source.name}", value, least)
                        self._done += 1
                    else:
                        assert answer.status in UNKNOWN, (answer.status, answer.body)
                await trio.sleep(PAUSE_S)


def _number(answer: Any) -> float:
    """The newest number in a composite state, or in a list of states."""
    if isinstance(answer, list):
        return float(answer[0]["data"]["temp"]) if answer else -1.0
    return float(answer["temp"]["value"]) if "temp" in answer else -1.0


class Registering(Asking):
    """It writes and reads numbers that others write as well, and keeps the histories."""

    def __init__(self, name: str, front: Front, registers: Sequence[Register], random: Random) -> None:
        super().__init__(name, front)
        self._registers = registers
        self._random = random
        self._stubborn = _stubborn(name, random)

    async def run(self, stopping: trio.Event) -> None:
        async with connection_of(self.front) as connection:
            while not stopping.is_set():
                for register in self._registers:
                    if register.takes_keys and self._random.random() < 0.2:
                        await register.write_stubbornly(self._stubborn, self.front)
                        self._done += 1
                    else:
                        self._done += await register.write_or_read(connection, self._random)
                    await trio.sleep(PAUSE_S)


async def clients_of(
    fronts: Sequence[Front],
    registers: Sequence[Register],
    acks: list[float],
    verdict: Verdict,
    random: Random,
) -> list[Client]:
    """Clients of all kinds for each machine. The times of what REST acknowledges are added to `acks`."""
    first = fronts[0]
    application = await first.application("load")
    key = await first.call("POST", f"{application}/keys", {})
    login = {"username": key["key"], "password": key["secret"].encode()}
    found: list[Client] = []
    sources: list[Source] = []

    def chance() -> Random:
        return Random(random.random())

    for n, front in enumerate(fronts):
        device = await first.device(application)
        sources.append(Counting(f"counting {n}", front, device, acks, chance()))
        device = await first.device(application)
        token, _ = await first.device_token(device)
        sources.append(Linked(f"linked {n}", front, device, token, chance(), times=n == 1))
        device = await first.device(application)
        sources.append(Publishing(f"publishing {n}", front, device, login, chance(), times=n != 1))
    for n, front in enumerate(fronts):
        found.append(Writing(f"writing {n}", front, acks, chance()))
        found.append(Reader(f"reader {n}", front, sources, verdict))
        found.append(Registering(f"registering {n}", front, registers, chance()))
    return [*sources, *found]
