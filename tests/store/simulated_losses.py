"""Nodes of a log that loses what it had acknowledged, as one does whose servers do not sync, or whose disks rot.

Owns no test.

What only the log had is lost. Nodes that have it must stop, loudly: neither does one follow a log that goes on without
it, nor does an owner append to such a log.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import trio

from tests.store.replicated_node import Node
from tests.store.simulated_log import SimulatedLog
from tests.store.simulated_nodes import LIFE_S, NAMES, History, Server, Words, read_often, write_often
from trunkline.store.follower import chain_of, followed
from trunkline.store.log import Chain, hash_of

OUT_S: Final = (0.0, 1.0, 5.0, 12.0)
"""How long the servers of the log are gone when it loses something."""
UNHEARD_S: Final = 6.0
"""So long after that a node may not be heard by another one: connections come back one after the other."""
LOST: Final = (1, 1, 2, 3, 5, 8, 20)
SOME: Final = 3
"""The log has so many entries when it loses some."""


async def live(folder: Path, seed: int) -> Counter[str]:
    """One history. Returns what has happened in it."""
    random, history = Random(seed), History()
    async with trio.open_nursery() as nursery:
        log = SimulatedLog(random, nursery, random.choice((0.0, 0.05)), random.choice((0.005, 0.1)))
        words = Words(random, random.choice((0.0, 0.3)))
        servers = [Server(Node(folder, name), log, words, random, history) for name in NAMES]
        loses_end = random.random() < 0.7
        async with trio.open_nursery() as living:
            for server in servers:
                living.start_soon(server.live)
            living.start_soon(write_often, servers, random, history)
            living.start_soon(read_often, servers, random, history)
            await trio.sleep(random.uniform(5, LIFE_S / 2))
            await _harm(log, words, random, history, loses_end=loses_end)
            await trio.sleep(LIFE_S)
            history.is_ending = True
            await trio.sleep(2 * LIFE_S)
            living.cancel_scope.cancel()
        nursery.cancel_scope.cancel()
    _check(servers, log, history, loses_end=loses_end)
    return history.reached


async def _harm(
    log: SimulatedLog, words: Words, random: Random, history: History, *, loses_end: bool
) -> None:
    """Let the log lose entries while nobody reaches it; then its nodes hear of each other one after the other."""
    while len(log.entries) < SOME:  # noqa: ASYNC110 - a moment of the log
        await trio.sleep(1)
    with log.silent():
        history.is_harmed = True
        if loses_end:
            log.lose_end(min(random.choice(LOST), len(log.entries) - 1))
            history.reached["the log has lost its end"] += 1
        else:
            log.lose_one(random.randrange(1, len(log.entries) - 1))
            history.reached["the log has lost an entry"] += 1
        words.unheard = {(one, other) for one in NAMES for other in NAMES if one != other}
        await trio.sleep(random.choice(OUT_S))
    for pair in sorted(words.unheard, key=lambda _: random.random()):
        await trio.sleep(random.uniform(0, UNHEARD_S / 6))
        words.unheard.discard(pair)


def _check(servers: list[Server], log: SimulatedLog, history: History, *, loses_end: bool) -> None:
    """Each node has what the log has, up to some entry, or has stopped. A log that has lost its end is whole."""
    hashes = {placed.place: hash_of(placed.data) for placed in log.entries}
    for server in servers:
        if server.has_stopped:
            continue
        with followed(server.node.directory) as memory_map:
            chain = chain_of(memory_map, 0)
        assert not chain.place or hashes.get(chain.place) == chain.tip, (
            f"{server.node.name} has an entry at {chain.place} that the log has lost, and goes on"
        )
        history.reached["a node went on with the log"] += 1
    if loses_end:
        chain = Chain(0)
        for placed in log.entries:
            chain.add(placed)  # nobody has appended to a log that lacks what it had
