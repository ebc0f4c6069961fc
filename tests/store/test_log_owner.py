"""Owners of a log: what one has appended is in the log once and in order, whoever claims it and whatever is lost."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import trio
import trio.testing

from tests.nats_servers import nats_servers
from tests.patience import PATIENCE_S
from tests.rounds import examples
from tests.store.simulated_log import SimulatedLog
from trunkline.store.errors import Fenced, LogBroken, LogUnreachable
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import Chain, Entry, Log
from trunkline.store.log_owner import LogOwner
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.standby import Claim

PARTITION = 3


def stored_in(log: SimulatedLog) -> list[Entry]:
    """All of a log, as a reader finds it."""
    chain = Chain(PARTITION)
    return [chain.add(placed) for placed in log.entries]


async def claimed(log: Log, name: str, follow_s: float = 1) -> LogOwner:
    """An owner that has followed the log to its end and claimed it, however often that takes."""
    chain = Chain(PARTITION)
    while True:
        with trio.move_on_after(follow_s):
            try:
                async with log.follow(chain.place) as entries:
                    async for placed in entries:
                        chain.add(placed)
            except LogUnreachable:
                continue
        owner = LogOwner(log, chain, name)
        if await owner.claim():
            return owner


@pytest.fixture
def autojump() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.mark.parametrize("first", range(0, examples(60), 20))
def test_what_is_acknowledged_is_there_once_and_in_order_whatever_is_lost(first: int) -> None:
    for seed in range(first, first + 20):
        trio.run(histories, Random(seed), clock=trio.testing.MockClock(autojump_threshold=0))


async def histories(random: Random) -> None:
    """Some owners, one after the other or at a time, of which some give up."""
    done: dict[str, list[bytes]] = {name: [] for name in "abcdef"}
    async with trio.open_nursery() as nursery:
        log = SimulatedLog(random, nursery, random.choice((0.0, 0.1, 0.4)), random.choice((0.01, 0.5)))

        async def own(name: str) -> None:
            await trio.sleep(random.uniform(0, 30))
            owner, pause_s = await claimed(log, name, random.uniform(0.1, 3)), random.uniform(0, 2)
            for number in range(20):
                body = b"%b %d" % (name.encode(), number) + bytes(random.choice((0, 250)))
                try:
                    with trio.move_on_after(random.choice((1, 600))) as scope:
                        await owner.append(body)
                    if scope.cancelled_caught:
                        await owner.append(body)  # nobody knows: the same again
                except Fenced:
                    assert stored_in(log)[-1].epoch > owner.chain.epoch, "somebody else has claimed it"
                    return
                done[name].append(body)
                await trio.sleep(pause_s)

        async with trio.open_nursery() as owners:
            for name in done:
                owners.start_soon(own, name)
        nursery.cancel_scope.cancel()
    stored = stored_in(log)
    assert stored[-1].epoch == len(done), "each has claimed it once"
    for name, acknowledged in done.items():
        bodies = [entry.body for entry in stored if entry.owner == name and entry.kind == "group"]
        assert bodies[: len(acknowledged)] == acknowledged
        assert len(bodies) <= len(acknowledged) + 1
    in_turn = [name for name, _ in itertools.groupby(entry.owner for entry in stored)]
    assert len(in_turn) == len(done), "nothing of an owner is behind the claim of the next one"


async def test_a_claim_ends_the_owner_before(autojump: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    log = SimulatedLog(Random(1), nursery)
    one = await claimed(log, "one")
    await one.append(b"first")
    late = LogOwner(log, Chain(PARTITION), "late")
    assert not await late.claim(), "it has not followed"
    two = await claimed(log, "two")
    for _ in range(2):
        with pytest.raises(Fenced, match="two owns partition 3 in epoch 2"):
            await one.append(b"second")
    await two.append(b"second of two")
    assert [each.body for each in stored_in(log)] == [b"", b"first", b"", b"second of two"]


async def test_a_log_that_has_lost_what_it_had_acknowledged_stops_the_owner(
    autojump: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    log = SimulatedLog(Random(1), nursery)
    owner = await claimed(log, "one")
    await owner.append(b"first")
    del log.entries[-1]
    with pytest.raises(LogBroken, match="it has lost entries, or was made again"):
        await owner.append(b"second")


async def test_a_process_takes_no_claim_of_an_earlier_one_for_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It may begin so far back that it could make the same claim once more."""
    log = SimulatedLog(Random(1), nursery)
    first, second = (Claim(b"secrets", True, process).encoded() for process in (1, 2))
    before = LogOwner(log, Chain(PARTITION), "one")
    assert await before.claim(first)
    await before.append(b"", "mark")
    other = await claimed(log, "two")
    await other.append(b"what is acknowledged")
    assert not await LogOwner(log, Chain(PARTITION), "one").claim(second)
    assert await LogOwner(log, Chain(PARTITION), "one").claim(first), (
        "so ends a claim that nobody has answered"
    )


@pytest.mark.slow
async def test_a_leader_of_the_log_is_killed_and_the_next_one_stands_still(tmp_path: Path) -> None:
    """With three real servers, of which each can be away."""
    async with nats_servers(tmp_path, 3) as servers, trio.open_nursery() as nursery:
        connection = NatsConnection([each.address for each in servers])
        await nursery.start(connection.run)
        log, names = JetStreamLog(connection, "tl-test-3", "tl.test.3"), {each.name: each for each in servers}
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    await log.create(3)
                    break
                except LogUnreachable:
                    continue
            owner = await claimed(log, "one")
            for number in range(2):
                leader = names[(await log.servers())[0].name]
                for at in range(20):
                    await owner.append(b"%d before %d" % (number, at))
                await (leader.kill() if number == 0 else leader.stand_still())
                for at in range(20):
                    await owner.append(b"%d behind %d" % (number, at))
                await (leader.start(nursery) if number == 0 else leader.go_on())
            next_owner = await claimed(log, "two")
            with pytest.raises(Fenced):
                await owner.append(b"never")
            await next_owner.append(b"end")
            chain, bodies = Chain(PARTITION), list[bytes]()
            while b"end" not in bodies:
                with suppress(LogUnreachable):
                    async with log.follow(chain.place) as entries:
                        async for placed in entries:
                            bodies.append(chain.add(placed).body)
                            if bodies[-1] == b"end":
                                break
        sent = [
            b"%d %b %d" % (n, w, at) for n in range(2) for w in (b"before", b"behind") for at in range(20)
        ]
        assert bodies == [b"", *sent, b"", b"end"]
        nursery.cancel_scope.cancel()
