"""Nodes of a log that are killed, end, and are cut off, with one writer and readers of all of them. Owns no test.

The log is simulated, and so are the words between the nodes; stores are real. One number is written, larger each time.
Whoever reads it from an owner is told no smaller one than was acknowledged, or told, before he asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import trio

from tests.store.replicated_node import Node
from tests.store.simulated_log import SimulatedLog
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import Fenced, LogBroken, LogUnreachable, StoreError
from trunkline.store.log import Chain, LogState, Placed
from trunkline.store.nats_codec import Message
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.replicated_journal import ReplicatedJournal
from trunkline.store.standby import Standby

LIFE_S: Final = 60.0
KEY: Final = b"number"
NAMES: Final = ("a", "b", "c")
STARTS_S: Final = (0.0, 0.1, 3.0)
"""How long a server takes to start when its node owns the partition."""
SILENCE_S: Final = 1.5


class Words:
    """What all nodes hear of each other. Some are lost."""

    def __init__(self, random: Random, lost: float) -> None:
        self.heard: dict[str, trio.MemorySendChannel[bytes]] = {}
        self.cut: set[str] = set()
        self.unheard: set[tuple[str, str]] = set()
        """Who is not heard by whom."""
        self._random = random
        self._lost = lost

    def say(self, name: str, payload: bytes) -> None:
        if name in self.cut:
            return
        for other, channel in self.heard.items():
            if other in self.cut or (name, other) in self.unheard:
                continue
            if self._random.random() >= self._lost:
                with suppress(trio.WouldBlock):
                    channel.send_nowait(payload)


class Connection:
    """That of a node, in place of `NatsConnection`."""

    def __init__(self, words: Words, name: str) -> None:
        self._words = words
        self._name = name
        self._coming: Any = None

    @asynccontextmanager
    async def messages(self, _subject: str) -> AsyncIterator[Connection]:
        self._words.heard[self._name], self._coming = trio.open_memory_channel[bytes](1000)
        try:
            yield self
        finally:
            del self._words.heard[self._name]

    async def next(self, _wait_s: float) -> Message:
        return Message("words", 1, "", await self._coming.receive())

    async def send(self, _subject: str, payload: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._words.say(self._name, payload)


class Way:
    """The log as one node reaches it: while that is cut off, nothing passes in either direction."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self._open = trio.Event()
        self._open.set()

    def cut(self) -> None:
        if self._open.is_set():
            self._open = trio.Event()

    def mend(self) -> None:
        self._open.set()

    async def identity(self) -> str:
        return await self._log.identity()

    def length(self, data: bytes) -> int:
        return self._log.length(data)

    async def append(self, data: bytes, after: int) -> int:
        await self._open.wait()
        place = await self._log.append(data, after)
        await self._open.wait()
        return place

    @asynccontextmanager
    async def follow(self, after: int) -> AsyncGenerator[AsyncGenerator[Placed, None], None]:
        async with self._log.follow(after) as entries:
            yield self._passed(entries)

    async def _passed(self, entries: AsyncGenerator[Placed, None]) -> AsyncGenerator[Placed, None]:
        async for placed in entries:
            await self._open.wait()
            yield placed

    async def entry(self, place: int) -> bytes | None:
        await self._open.wait()
        found = await self._log.entry(place)
        await self._open.wait()
        return found

    async def trim(self, before: int) -> None:
        await self._log.trim(before)

    async def state(self) -> LogState:
        return await self._log.state()


class History:
    """What was sent, acknowledged and told."""

    def __init__(self) -> None:
        self.sent = 0
        self.known = 0
        """The largest number that was acknowledged to the writer, or told to a reader."""
        self.refused: set[int] = set()
        """Those of which the writer was told that they are not stored."""
        self.reached: Counter[str] = Counter()
        self.is_harmed = False
        """The log has lost what it had acknowledged."""
        self.is_ending = False
        """Nothing happens to nodes any more."""

    def told(self, number: int, known: int) -> None:
        """A reader was told a number, who had asked when `known` was known."""
        assert self.is_harmed or known <= number <= self.sent, (
            f"{number} was told when {known} was known and {self.sent} was sent"
        )
        self.check(number)
        self.known = max(self.known, number)
        self.reached["a read was told"] += 1

    def check(self, number: int) -> None:
        """A reader was told a number: it was not refused."""
        assert number not in self.refused, f"{number} was told, and the writer that it is not stored"


class Server:
    """A node that lives again and again, and serves while it owns the partition."""

    def __init__(self, node: Node, log: SimulatedLog, words: Words, random: Random, history: History) -> None:
        self.node = node
        self.store: Store | None = None
        self.way = Way(log)
        self.has_stopped = False
        """Its log is broken."""
        self._log = log
        self._words = words
        self._random = random
        self._history = history
        self._rate, self._ahead_s = random.uniform(0.9, 1.1), random.uniform(-1e6, 1e6)

    def _boot_s(self) -> float:
        """The clock of the machine, which goes faster or slower than that of others, and begins at another time."""
        return trio.current_time() * self._rate + self._ahead_s

    async def live(self) -> None:
        """Live until cancelled, or until the log has lost what this node has."""
        while not self.has_stopped:
            await trio.sleep(self._random.uniform(0, 5))
            self.way = Way(self._log)
            self._words.cut.discard(self.node.name)
            with trio.CancelScope() as life:
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._suffer, life, self.way)
                        await self._serve(nursery)
                        nursery.cancel_scope.cancel()
                except* Fenced:
                    self._history.reached["an owner was fenced"] += 1
                except* LogUnreachable:
                    self._history.reached["an owner gave up"] += 1
                except* LogBroken:
                    if not self._history.is_harmed:
                        raise
                    self.has_stopped = True
                    self._history.reached["a node stopped for its log"] += 1

    async def _suffer(self, life: trio.CancelScope, way: Way) -> None:
        """Be cut off for a while, and killed in the end: nothing that it has sent or will send arrives any more."""
        if self._history.is_ending:
            return
        while self._random.random() < 0.6:
            await trio.sleep(self._random.uniform(0, 20))
            with self._cut_off(way):
                await trio.sleep(self._random.choice((0.3, 1.2, 3, 8)))
        await trio.sleep(self._random.uniform(0, 20))
        with self._cut_off(way):
            self._history.reached["a node was killed"] += 1
            self.store = None
            life.cancel()
            await trio.sleep_forever()

    @contextmanager
    def _cut_off(self, way: Way) -> Iterator[None]:
        self._history.reached["a node was cut off"] += 1
        way.cut()
        self._words.cut.add(self.node.name)
        yield
        self._words.cut.discard(self.node.name)
        way.mend()

    async def _serve(self, nursery: trio.Nursery) -> None:
        with self.node.store() as store, store.snapshot() as snapshot:
            is_empty = snapshot.get(keys.RECORDS, KEY) is None
        connection = cast("NatsConnection", Connection(self._words, self.node.name))
        standby = Standby(self.way, connection, "words", self.node.name, "address", SILENCE_S)
        nursery.start_soon(standby.nodes.run)
        owner = await standby.own(self.node.directory, b"secrets", self._no_copy, is_empty=is_empty)
        self._history.reached["a node owns the partition"] += 1
        await trio.sleep(self._random.choice(STARTS_S))
        journal = partial(ReplicatedJournal, owner=owner, boot_s=self._boot_s)
        with self.node.store(journal=journal) as store:
            async with trio.open_nursery() as running:
                await running.start(store.journal.run)
                self.store = store
                try:
                    await trio.sleep(self._random.choice((2, 10, math.inf)))
                finally:
                    self.store = None
                running.cancel_scope.cancel()
            with suppress(StoreError):
                await cast("ReplicatedJournal", store.journal).release()
                self._history.reached["an owner ended in order"] += 1

    @staticmethod
    async def _no_copy() -> None:
        raise AssertionError("nothing was trimmed")


async def live(folder: Path, seed: int) -> Counter[str]:
    """One history. Returns what has happened in it."""
    random, history = Random(seed), History()
    async with trio.open_nursery() as nursery:
        log = SimulatedLog(
            random, nursery, random.choice((0.0, 0.05, 0.3)), random.choice((0.005, 0.1, 0.25))
        )
        words = Words(random, random.choice((0.0, 0.3, 0.9)))
        servers = [Server(Node(folder, name), log, words, random, history) for name in NAMES]
        with trio.move_on_after(LIFE_S):
            async with trio.open_nursery() as living:
                for server in servers:
                    living.start_soon(server.live)
                living.start_soon(write_often, servers, random, history)
                for _ in range(2):
                    living.start_soon(read_often, servers, random, history)
        nursery.cancel_scope.cancel()
    chain = Chain(0)
    for placed in log.entries:
        chain.add(placed)
    return history.reached


async def _some_store(servers: list[Server], random: Random, pause_max_s: float) -> Store:
    """After a pause, and as soon as there is one, the store of a node that thinks to own the partition."""
    while True:
        await trio.sleep(random.uniform(0, pause_max_s))
        stores = [each.store for each in servers if each.store is not None]
        if stores:
            return random.choice(stores)


async def write_often(servers: list[Server], random: Random, history: History) -> None:
    while True:
        await written(await _some_store(servers, random, 0.3), history)


async def written(store: Store, history: History) -> None:
    """Write the next number, and wait a while until it is acknowledged."""
    history.sent += 1
    number = history.sent
    batch = Batch()
    batch.put(keys.RECORDS, KEY, number.to_bytes(4, "big"))
    group = store.journal.submit(batch)
    with trio.move_on_after(5), suppress(StoreError):
        try:
            await group.wait()
        except Fenced:
            history.refused.add(number)
            raise
        history.known = max(history.known, number)
        history.reached["a write was acknowledged"] += 1


async def read_often(servers: list[Server], random: Random, history: History) -> None:
    while True:
        store = await _some_store(servers, random, 0.1)
        known = history.known
        with store.snapshot() as snapshot:
            found = snapshot.get(keys.RECORDS, KEY)
        if store.journal.is_current():
            history.told(int.from_bytes(found or b"", "big"), known)
        else:
            history.reached["a read was told to nobody"] += 1
