"""A store with a log: what is acknowledged is in the log and in every copy, and the copies are the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import lmdb
import pytest
import trio
import trio.testing

from tests.nats_servers import PATIENT, nats_servers
from tests.patience import PATIENCE_S
from tests.rounds import examples
from tests.store.replicated_node import MAP_BYTES, Node
from tests.store.simulated_log import SimulatedLog
from trunkline.store import codec, flusher, keys
from trunkline.store.batch import Batch
from trunkline.store.env import Store
from trunkline.store.errors import Fenced, JournalFull, LogBroken, LogUnreachable, StoreError, StoreLost
from trunkline.store.follower import chain_of, followed
from trunkline.store.jetstream import JetStreamLog
from trunkline.store.log import Log, decoded
from trunkline.store.nats_connection import NatsConnection
from trunkline.store.replicated_journal import ReplicatedJournal

DEVICES = [bytes([number]) * 12 for number in range(1, 6)]


def put(key: bytes, value: bytes | None, db: str = keys.RECORDS) -> Batch:
    batch = Batch()
    if value is None:
        batch.delete(db, key)
    else:
        batch.put(db, key, value)
    return batch


def reported(device: bytes, time_ms: int, value: int) -> Batch:
    batch = Batch()
    batch.report(device, time_ms, codec.encode({0: value}))
    return batch


@contextmanager
def shown(problem: type[Exception]) -> Iterator[None]:
    """What is in the body ends with this, and nothing else."""
    with pytest.raises(BaseExceptionGroup) as raised:
        yield
    found: BaseException = raised.value
    while isinstance(found, BaseExceptionGroup):
        (found,) = found.exceptions
    assert isinstance(found, problem), found


@pytest.fixture
async def log(nursery: trio.Nursery) -> SimulatedLog:
    return SimulatedLog(Random(1), nursery)


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[Node, Node]:
    return Node(tmp_path, "one"), Node(tmp_path, "two")


async def write_all_kinds(store: Store) -> None:
    """Some of everything that can be in a group, and what the flusher makes of it."""
    journal = store.journal
    flushing = flusher.Flusher(store, lambda ahead: ahead.head or b"\x80", 3600.0)
    for number in range(4):
        for at, device in enumerate(DEVICES):
            journal.submit(reported(device, 1000 * number + at, number))
        batch = put(b"key %d" % number, bytes(number * 2000))
        batch.add(keys.COUNTS, b"count", {"all": 1, "some": number})
        hour = Batch()
        hour.add(keys.COUNTS, keys.counts_key(DEVICES[0], number), {"states": 3})
        journal.submit(hour)
        await journal.submit(batch).wait()
    await journal.submit(put(b"key 1", None)).wait()
    await flushing.flush_all()
    wipe = Batch()
    wipe.report_wiped(DEVICES[1])
    await journal.submit(wipe).wait()
    await journal.submit(reported(DEVICES[1], 9000, 9)).wait()
    await flushing.flush_all()
    await journal.submit(reported(DEVICES[2], 9001, 9)).wait()


async def test_a_copy_is_the_same_byte_for_byte(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        await write_all_kinds(store)
    await two.followed_to(log, log.last)
    for node in nodes:
        with followed(node.directory) as memory_map:
            assert chain_of(memory_map, 0).place == log.last, "whoever follows next begins behind it"
    assert two.content() == one.content()
    assert any(entries for db, entries in one.content().items() if db == keys.RUNS)


@pytest.mark.slow
async def test_the_same_through_real_servers(
    nodes: tuple[Node, Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = nodes
    for name in PATIENT:
        monkeypatch.setattr(f"trunkline.{name}", PATIENCE_S)
    async with nats_servers(tmp_path) as (server,), trio.open_nursery() as nursery:
        connection = NatsConnection([server.address])
        await nursery.start(connection.run)
        log = JetStreamLog(connection, "tl-test-0", "tl.test.0", 3000)  # so that groups are several messages
        await log.create(1)
        async with one.owning(log) as store:
            await write_all_kinds(store)
        await two.followed_to(log, (await log.state()).last)
        assert two.content() == one.content()
        async with two.owning(log) as store:
            await store.journal.submit(put(b"after", b"it")).wait()
        await one.followed_to(log, (await log.state()).last)
        assert two.content() == one.content()
        nursery.cancel_scope.cancel()


async def test_the_next_owner_has_all_that_was_acknowledged(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        group = store.journal.submit(put(b"a", b"1"))
        await group.wait()
        store.journal.submit(reported(DEVICES[0], 5, 7))
    async with two.owning(log) as store:
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.RECORDS, b"a") == b"1"
            assert [len(points) for points in snapshot.points(DEVICES[0], 0, 10)] == [1]
        await store.journal.submit(put(b"a", b"2")).wait()
    async with one.owning(log) as store:
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.RECORDS, b"a") == b"2"


async def test_nothing_is_seen_before_the_log_has_it(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    one, _ = nodes
    called: list[str] = []
    async with one.owning(log) as store:
        journal = store.journal
        with log.silent():
            for number in range(6):
                group = journal.submit(put(b"a", b"%d" % number))
                group.then(partial(called.append, str(number)))
                journal.submit(reported(DEVICES[0], number, number))
                more = Batch()
                more.add(keys.COUNTS, b"count", {"all": 1})
                journal.submit(more)
                await trio.sleep(0.1)
            assert journal.pending_batches == 3 * (6)
            assert called == []
            with store.snapshot() as snapshot:
                assert snapshot.get(keys.RECORDS, b"a") is None
                assert snapshot.get(keys.COUNTS, b"count") is None
                assert list(snapshot.points(DEVICES[0], 0, 10)) == []
            # Who reads its own writes finds those that are under way and those that wait, in their order.
            assert journal.get(keys.RECORDS, b"a") == b"%d" % (5)
            assert codec.decode(journal.get(keys.COUNTS, b"count") or b"") == {"all": 6}
            assert [key for key, _ in journal.range(keys.RECORDS, b"a", b"b")] == [b"a"]
            assert [len(points) for points in journal.points(DEVICES[0], 0, 10)] == [6]
        await group.wait()
        assert called == [str(number) for number in range(6)]
        assert journal.pending_batches == journal.pending_bytes == 0
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.RECORDS, b"a") == b"%d" % (5)


async def test_what_is_under_way_counts_for_the_bounds(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    async with nodes[0].owning(log, journal_batches_max=3) as store:
        with log.silent():
            for number in range(3):
                store.journal.submit(put(b"a", b"%d" % number))
                await trio.sleep(0.1)
            with pytest.raises(JournalFull, match="3 batches of"):
                store.journal.submit(put(b"b", b"4"))
        await trio.sleep(1)
        await store.journal.submit(put(b"b", b"5")).wait()


async def test_an_owner_that_is_fenced_fails_all_groups_and_ends(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes
    with shown(Fenced):
        async with one.owning(log) as store:
            await store.journal.submit(put(b"a", b"1")).wait()
            epoch = store.journal.epoch
            async with two.owning(log) as other:
                await other.journal.submit(put(b"a", b"2")).wait()
            groups = []
            for number in range(3):
                groups.append(store.journal.submit(put(b"b", b"%d" % number)))
                await trio.lowlevel.checkpoint()
            for group in groups:
                with pytest.raises(Fenced, match="two owns partition 0 in epoch 2"):
                    await group.wait()
            assert store.journal.epoch > epoch
            await trio.sleep_forever()
    async with one.owning(log) as store:
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.RECORDS, b"a") == b"2"
            assert snapshot.get(keys.RECORDS, b"b") is None


async def test_the_map_grows_here_and_there(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        for number in range(8):
            await store.journal.submit(put(b"large %d" % number, bytes(500_000))).wait()
        assert store.journal.statistics.growths
    await two.followed_to(log, log.last)
    assert two.content() == one.content()


async def test_a_group_is_in_the_log_once_when_the_server_ends_before_it_is_written(
    nodes: tuple[Node, Node], log: SimulatedLog, autojump_clock: trio.testing.MockClock
) -> None:
    """As the map cannot grow while somebody reads."""
    one, two = nodes
    owner = await one.claimed(log)
    with one.store(journal=partial(ReplicatedJournal, owner=owner)) as store, store.snapshot():
        async with trio.open_nursery() as running:
            await running.start(store.journal.run)
            group = store.journal.submit(put(b"large", bytes(2 * MAP_BYTES)))
            await trio.sleep(5)
            assert not group.done
            running.cancel_scope.cancel()
        with pytest.raises(LogUnreachable, match="nobody can say"):
            await group.wait()
    assert [decoded(each.data).kind for each in log.entries] == ["claim", "mark", "group"]
    await two.followed_to(log, log.last)
    assert [key for key, _ in two.content()[keys.RECORDS]] == [b"large"]


async def test_what_the_log_has_and_the_disk_has_not_ends_the_owner(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes

    is_full = trio.Event()

    def fail() -> float:
        if is_full.is_set():
            raise lmdb.DiskError("No space left on device")
        return 0

    with shown(StoreLost):
        async with one.owning(log, sync_delay_s=fail) as store:
            await store.journal.begun()
            is_full.set()
            group = store.journal.submit(put(b"a", b"1"))
            with pytest.raises(StoreLost, match="The log has a group that cannot be written here"):
                await group.wait()
            await trio.sleep_forever()
    async with two.owning(log) as store:
        with store.snapshot() as snapshot:
            assert snapshot.get(keys.RECORDS, b"a") == b"1", "nobody was told that it is not stored"


async def test_a_store_that_was_written_without_its_log_is_no_copy(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, _ = nodes
    async with one.owning(log) as store:
        await store.journal.submit(put(b"a", b"1")).wait()
    with one.store(keeps_log=False):
        pass
    with followed(one.directory) as memory_map:
        assert chain_of(memory_map, 0).place == 0


async def test_a_server_that_drains_fails_nothing_that_is_under_way(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    """It flushes the journal while calls still come, and the journal goes on."""
    one, two = nodes
    async with one.owning(log) as store:
        await store.journal.begun()
        with log.silent():
            first = store.journal.submit(put(b"a", b"1"))
            await trio.sleep(0.05)
            store.journal.flush()
            second = store.journal.submit(put(b"b", b"2"))
            store.journal.flush()
            assert not first.done
        await first.wait()
        await second.wait()
    await two.followed_to(log, log.last)
    assert [key for key, _ in two.content()[keys.RECORDS]] == [b"a", b"b"]


async def test_a_log_that_was_made_again_is_not_followed(nodes: tuple[Node, Node], log: SimulatedLog) -> None:
    one, two = nodes
    async with one.owning(log) as store:
        await store.journal.submit(put(b"a", b"1")).wait()
    log.name = "another"
    with shown(LogBroken):
        await one.followed_to(log, log.last + 1)
    await two.followed_to(log, log.last)


async def test_a_group_that_cannot_be_read_stops_the_follower(
    nodes: tuple[Node, Node], log: SimulatedLog
) -> None:
    one, two = nodes
    owner = await one.claimed(log)
    await owner.append(b"no group")
    with shown(LogBroken):
        await two.followed_to(log, log.last)


async def test_a_server_that_ends_without_the_log_says_that_nobody_knows(
    nodes: tuple[Node, Node], log: SimulatedLog, autojump_clock: trio.testing.MockClock
) -> None:
    async with nodes[0].owning(log) as store:
        silent = log.silent()
        silent.__enter__()
        group = store.journal.submit(put(b"a", b"1"))
        await trio.sleep(1)
    with pytest.raises(LogUnreachable, match="nobody can say whether the log has what was sent"):
        await group.wait()


async def test_a_server_that_drains_does_not_wait_for_a_log_that_is_away(
    nodes: tuple[Node, Node], log: SimulatedLog, autojump_clock: trio.testing.MockClock
) -> None:
    """What waits fails although nothing cancels the journal, and so does what comes later, without a crash."""
    async with nodes[0].owning(log) as store:
        await store.journal.begun()
        with log.silent():
            group = store.journal.submit(put(b"a", b"1"))
            store.journal.flush()
            for each in (group, None):
                with pytest.raises(LogUnreachable, match="nobody can say whether the log has what was sent"):
                    await (each or store.journal.submit(put(b"b", b"2"))).wait()
        with pytest.raises(LogUnreachable):
            await store.journal.release()  # type: ignore[attr-defined]
        await trio.sleep(60)
    assert [decoded(each.data).kind for each in log.entries] == ["claim", "mark"]


@pytest.mark.parametrize("first", range(0, examples(40), 10))
def test_copies_are_the_same_whatever_is_lost(tmp_path: Path, first: int) -> None:
    """Two nodes own the partition in turn, each ended or cut off at any time."""
    for seed in range(first, first + 10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        trio.run(histories, folder, Random(seed), clock=trio.testing.MockClock(autojump_threshold=0))


async def histories(folder: Path, random: Random) -> None:
    one, two = Node(folder, "one"), Node(folder, "two")
    sent, acknowledged = defaultdict[bytes, list[bytes]](list), dict[bytes, bytes]()
    async with trio.open_nursery() as nursery:
        log = SimulatedLog(random, nursery, random.choice((0.0, 0.2)), random.choice((0.01, 0.2)))
        for round_ in range(4):
            node = random.choice((one, two))
            with trio.move_on_after(random.uniform(0.5, 60)):
                await write_at_random(node, log, random, round_, sent, acknowledged)
        async with one.owning(log) as store:
            with store.snapshot() as snapshot:
                for key, value in acknowledged.items():
                    found = snapshot.get(keys.RECORDS, key)
                    assert found in sent[key][sent[key].index(value) :], "as acknowledged, or sent after that"
        await two.followed_to(log, log.last)
        assert one.content() == two.content()
        nursery.cancel_scope.cancel()


async def write_at_random(
    node: Node,
    log: Log,
    random: Random,
    round_: int,
    sent: dict[bytes, list[bytes]],
    acknowledged: dict[bytes, bytes],
) -> None:
    async with node.owning(log) as store:
        for number in range(30):
            key = b"%d %d" % (round_, random.randrange(8))
            value = b"%d" % number
            try:
                group = store.journal.submit(put(key, value))
                sent[key].append(value)
                group.then(partial(acknowledged.__setitem__, key, value))
                store.journal.submit(reported(random.choice(DEVICES), number, number))
            except StoreError:
                return
            await trio.sleep(random.choice((0, 0, 0.1, 1)))
