"""A log in a stream of a real server: what is appended is there once, whole and in order, and nothing else is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import trio

from tests.nats_servers import PATIENT, NatsServer, nats_servers
from tests.patience import PATIENCE_S
from trunkline.store.errors import LogBroken, LogUnreachable, StoreBroken
from trunkline.store.jetstream import PARTS_MAX, JetStreamLog
from trunkline.store.jetstream_answers import checked
from trunkline.store.log import LogState, NotNext, Placed, Trimmed, end_of
from trunkline.store.nats_connection import NatsConnection

pytestmark = pytest.mark.slow

PART_BYTES = 1000


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    async with nats_servers(tmp_path) as (one,):
        yield one


@pytest.fixture
async def connection(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NatsConnection]:
    for name in PATIENT:
        monkeypatch.setattr(f"trunkline.{name}", PATIENCE_S)
    found = NatsConnection([server.address])
    async with trio.open_nursery() as nursery:
        await nursery.start(found.run)
        yield found
        nursery.cancel_scope.cancel()


@pytest.fixture
async def log(connection: NatsConnection) -> JetStreamLog:
    """An empty log whose entries are of several messages from `PART_BYTES` on."""
    found = JetStreamLog(connection, "tl-test-0", "tl.test.0", PART_BYTES)
    await found.create(1)
    return found


async def taken(log: JetStreamLog, after: int, count: int) -> list[Placed]:
    """The first entries behind a place."""
    found: list[Placed] = []
    with trio.fail_after(PATIENCE_S):
        async with log.follow(after) as entries:
            while len(found) < count:
                found.append(await anext(entries))
    return found


async def test_a_log_is_made_once(log: JetStreamLog) -> None:
    found = await log.look()
    assert found is not None
    assert (found.partitions, found.state) == (1, LogState(1, 0, 0))
    await log.append(b"one", 0)
    await log.create(1)
    assert (await log.state()).last == 1


async def test_what_is_sent_to_a_log_that_was_removed_goes_nowhere(
    connection: NatsConnection, log: JetStreamLog
) -> None:
    await log.append(b"one", 0)
    again = JetStreamLog(connection, log.name, "tl.test.0")
    before = await again.identity()
    for _ in range(2):
        await again.remove()
    await again.create(1)
    assert await again.identity() != before
    await again.append(b"one", 0)
    with pytest.raises(LogUnreachable):
        await log.append(b"two", 1)
    assert (await again.state()).last == 1


async def test_partitions_have_chains_of_their_own(connection: NatsConnection, server: NatsServer) -> None:
    logs = [
        JetStreamLog(connection, "tl-parts-0", "tl.parts.0", PART_BYTES, partition=number)
        for number in range(3)
    ]
    await logs[0].create(1, 3)
    for log in logs:
        found = await log.look()
        assert found is not None
        assert found.partitions == 3
    assert await logs[0].append(b"zero", 0) == 1
    assert await logs[1].append(b"one", 0) == 2
    assert await logs[1].append(b"1" * 3 * PART_BYTES, 2) == 5
    with pytest.raises(NotNext):
        await logs[1].append(b"again", 2)
    assert await logs[0].append(b"more", 1) == 6
    assert await taken(logs[0], 0, 2) == [Placed(1, b"zero"), Placed(6, b"more")]
    assert await taken(logs[1], 2, 1) == [Placed(5, b"1" * 3 * PART_BYTES)]
    assert [await end_of(log) for log in logs] == [6, 5, 0]
    assert await logs[1].entry(5) == b"1" * 3 * PART_BYTES
    await logs[0].trim(3)
    with pytest.raises(Trimmed):
        await taken(logs[1], 1, 1)


async def test_a_log_that_is_not_there_is_told(connection: NatsConnection) -> None:
    log = JetStreamLog(connection, "tl-other-0", "tl.other.0")
    assert await log.look() is None
    for call in (log.state(), log.trim(2), taken(log, 0, 1)):
        with pytest.raises(LogBroken, match="The log does not exist"):
            await call
    with pytest.raises(LogUnreachable):
        await log.append(b"one", 0)
    with pytest.raises(StoreBroken, match="The log refuses: replicas > 1 not supported"):
        await log.create(3)


async def test_an_entry_is_appended_behind_the_last_one_only(log: JetStreamLog) -> None:
    assert await log.append(b"one", 0) == 1
    assert await log.append(b"", 1) == 2
    for after in (0, 1, 3):
        with pytest.raises(NotNext) as refusal:
            await log.append(b"other", after)
        assert refusal.value.last == 2
    assert await taken(log, 0, 2) == [Placed(1, b"one"), Placed(2, b"")]


@pytest.mark.parametrize("size", [PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES, 300 * PART_BYTES + 7])
async def test_a_large_entry_is_whole_or_not_there(log: JetStreamLog, size: int) -> None:
    large, parts = bytes(range(256)) * (size // 256) + bytes(size % 256), -(-size // PART_BYTES)
    assert log.length(large) == parts
    await log.append(b"one", 0)
    for after in (0, 2):
        with pytest.raises(NotNext) as refusal:
            await log.append(large, after)
        assert refusal.value.last == 1
    place = await log.append(large, 1)
    assert place == 1 + parts
    assert await log.append(b"end", place) == place + 1
    assert await taken(log, 0, 3) == [Placed(1, b"one"), Placed(place, large), Placed(place + 1, b"end")]
    assert await taken(log, place, 1) == [Placed(place + 1, b"end")]
    assert await end_of(log) == place + 1
    assert [await log.entry(each) for each in (1, place, place + 1, place + 2)] == [
        b"one",
        large,
        b"end",
        None,
    ]


async def test_an_entry_that_is_too_large_is_refused(log: JetStreamLog) -> None:
    with pytest.raises(StoreBroken, match="is too large for the log"):
        await log.append(bytes(PARTS_MAX * PART_BYTES + 1), 0)
    assert (await log.state()).last == 0


async def test_several_are_under_way(log: JetStreamLog) -> None:
    """The server compares with what it was sent before, whether that is stored yet or not."""
    async with trio.open_nursery() as nursery:
        for after in range(50):
            nursery.start_soon(log.append, b"%d" % after, after)
            await trio.lowlevel.checkpoint()
    assert [each.data for each in await taken(log, 0, 50)] == [b"%d" % number for number in range(50)]


async def test_who_follows_gets_what_comes_later(log: JetStreamLog) -> None:
    got: list[Placed] = []
    async with log.follow(0) as entries, trio.open_nursery() as nursery:

        async def follow() -> None:
            async for placed in entries:
                got.append(placed)
                if placed.data == b"299":
                    return

        nursery.start_soon(follow)
        for after in range(300):
            assert await log.append(b"%d" % after, after) == after + 1
    assert [each.place for each in got] == [*range(1, 301)]


async def test_what_was_removed_is_told_of(log: JetStreamLog) -> None:
    for after in range(10):
        await log.append(b"%d" % after, after)
    for before in (0, 1):  # that of a machine that has nothing yet
        await log.trim(before)
        assert (await log.state())[:2] == (1, 10)
    await log.trim(6)
    assert (await log.state())[:2] == (6, 10)
    with pytest.raises(Trimmed) as told:
        await taken(log, 4, 1)
    assert told.value.first == 6
    assert await taken(log, 5, 1) == [Placed(6, b"5")]
    await log.trim(11)
    assert (await log.state())[:2] == (11, 10)
    assert await log.append(b"next", 10) == 11


async def test_what_somebody_else_has_put_there_is_told(
    log: JetStreamLog, connection: NatsConnection
) -> None:
    await connection.request(f"tl.test.0{await log.identity()}", b"hello", wait_s=PATIENCE_S)
    with pytest.raises(LogBroken, match="has a message at 1 that is not an entry"):
        await taken(log, 0, 1)


async def test_a_reader_is_told_when_the_server_is_gone(log: JetStreamLog, server: NatsServer) -> None:
    await log.append(b"one", 0)
    async with log.follow(0) as entries:
        assert await anext(entries) == Placed(1, b"one")
        await server.kill()
        with pytest.raises(LogUnreachable):
            async with aclosing(entries):
                await anext(entries)


def test_servers_that_have_just_been_started_are_waited_for() -> None:
    for sentence in ("no suitable peers for placement, peer offline", "no suitable peers for placement"):
        with pytest.raises(LogUnreachable, match=sentence):
            checked({"error": {"code": 400, "err_code": 10005, "description": sentence}})
