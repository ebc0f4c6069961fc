"""When a node claims a partition, and whether another one has its name."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
import trio
import trio.testing

from tests.store.replicated_node import Node
from tests.store.simulated_log import SimulatedLog
from tests.store.simulated_nodes import SILENCE_S, Connection, Words
from trunkline.store import codec
from trunkline.store.follower import Follower
from trunkline.store.log import Chain
from trunkline.store.log_nodes import BEAT_S, NAMESAKE_S, Nodes, Word
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.standby import START_S, Standby

BODY = codec.encode([b"secrets", True])


class Hurried(Standby):
    """A node that reads the claim of another one while it stops to follow, the first time."""

    claimed_s = 0.0

    async def _follow(self, follower: Follower) -> None:
        await super()._follow(follower)
        if self.claimed_s:
            return
        log = cast("SimulatedLog", self._log)
        chain = Chain(0)
        for placed in log.entries:
            chain.add(placed)
        self.claimed_s = trio.current_time()
        assert await LogOwner(log, chain, "c").claim(BODY)
        follower._take(log.entries[-1])


async def test_a_claim_that_is_read_last_of_all_is_respected(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever has claimed may read for a while, so nobody else claims before it was silent for long enough."""
    node = Node(tmp_path, "b")
    connection = cast("NatsConnection", Connection(Words(Random(1), 0.0), "b"))
    async with trio.open_nursery() as nursery:
        log = SimulatedLog(Random(1), nursery)
        assert await LogOwner(log, Chain(0), "a").claim(BODY)
        standby = Hurried(log, connection, "words", "b", "address", SILENCE_S)
        nursery.start_soon(standby.nodes.run)
        owner = await standby.own(node.directory, b"secrets", trio.lowlevel.checkpoint, is_empty=True)
        assert owner.chain.epoch == 3
        assert trio.current_time() - standby.claimed_s > START_S
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("pause_s", "is_there"), [(0.0, False), (BEAT_S, True)])
async def test_what_an_earlier_process_has_said_is_no_namesake(
    autojump_clock: trio.testing.MockClock, pause_s: float, is_there: bool
) -> None:
    """Its words may come late, all at once; those of a node that is there come one after the other."""

    def said(process: int) -> Word:
        return Word("b", process, 1, 1, False, "address")

    nodes = Nodes(cast("Any", None), "words", lambda: said(2), SILENCE_S)
    assert not nodes.may_have_namesake
    for _ in range(10):
        nodes._hear(codec.encode(list(said(1))))
        assert nodes.may_have_namesake or nodes.has_namesake
        await trio.sleep(pause_s)
    assert nodes.has_namesake is is_there
    await trio.sleep(NAMESAKE_S)
    assert not nodes.may_have_namesake
