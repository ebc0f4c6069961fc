"""When a node claims a partition."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import trio
import trio.testing

from tests.store.replicated_node import Node
from tests.store.simulated_log import SimulatedLog
from tests.store.simulated_nodes import SILENCE_S, Connection, Words
from trunkline.store import codec
from trunkline.store.follower import Follower
from trunkline.store.log import Chain
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
