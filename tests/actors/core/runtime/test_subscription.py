"""Streams: bounded buffers, slow readers that are let go and counted, and every way in which a stream ends."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.probes import TOPIC, Add, AddSlowly, Begin, Peek, tally, workshop
from trunkline.actors.core.runtime.mailbox import Mailbox
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.streams import Streams
from trunkline.actors.core.runtime.subscription import Ending, Subscription
from trunkline.actors.core.values.errors import NotFound, Overloaded
from trunkline.limits.table import Limits


def subscription(length_max: int = 3, bytes_max: int = 100) -> Subscription:
    return Subscription({}, TOPIC, length_max=length_max, bytes_max=bytes_max)


def offer(reader: Subscription, position: int, event: bytes) -> bool:
    return reader.offer([(position, event)], len(event))


# One reader.


async def test_events_are_taken_in_order_and_all_at_once() -> None:
    reader = subscription()
    for position in range(3):
        assert offer(reader, position, b"e")
    assert await reader.receive() == [(0, b"e"), (1, b"e"), (2, b"e")]


async def test_a_waiting_reader_is_woken_by_an_event(nursery: trio.Nursery) -> None:
    reader, taken = subscription(), []

    async def read() -> None:
        taken.append(await reader.receive())

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    offer(reader, 1, b"e")
    offer(reader, 2, b"f")
    await trio.testing.wait_all_tasks_blocked()
    assert taken == [[(1, b"e"), (2, b"f")]]


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1], [60, 41]])
async def test_a_slow_reader_is_closed_and_its_buffer_freed(sizes: list[int]) -> None:
    reader = subscription()
    offers = [offer(reader, position, b"x" * size) for position, size in enumerate(sizes)]
    assert offers == [True] * (len(sizes) - 1) + [False]
    assert reader.ending is Ending.SLOW
    assert await reader.receive() == []


async def test_who_took_everything_is_not_slow_however_large_the_event() -> None:
    reader = subscription(bytes_max=10)
    assert offer(reader, 1, b"x" * 1000)
    assert await reader.receive() == [(1, b"x" * 1000)]
    assert offer(reader, 2, b"y" * 1000)
    assert not offer(reader, 3, b"z")


async def test_what_was_taken_leaves_room() -> None:
    reader = subscription(bytes_max=10)
    for position in range(50):
        assert offer(reader, position, b"x" * 10)
        assert await reader.receive() == [(position, b"x" * 10)]


@pytest.mark.parametrize("why", [Ending.GONE, Ending.DRAINING])
async def test_what_was_said_before_the_end_is_still_heard(why: Ending) -> None:
    reader = subscription()
    offer(reader, 1, b"e")
    reader.end(why)
    reader.end(Ending.SLOW)
    offer(reader, 2, b"late")
    assert reader.ending is why
    assert await reader.receive() == [(1, b"e")]
    assert await reader.receive() == []


async def test_a_nudge_wakes_without_an_event_and_is_not_lost(nursery: trio.Nursery) -> None:
    reader = subscription()
    reader.wake()
    reader.wake()
    assert await reader.receive() == []
    taken: list[object] = []

    async def read() -> None:
        taken.append(await reader.receive())

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    assert taken == []
    reader.wake()
    await trio.testing.wait_all_tasks_blocked()
    assert taken == [[]]


async def test_a_reader_who_stops_waiting_loses_nothing() -> None:
    reader = subscription()
    with trio.move_on_after(0):
        await reader.receive()
    offer(reader, 1, b"e")
    assert await reader.receive() == [(1, b"e")]


@given(st.lists(st.one_of(st.integers(0, 60), st.none()), max_size=60))
def test_the_buffer_keeps_within_its_bounds(steps: list[int | None]) -> None:
    """Whatever is offered (a size) and taken (None), a reader sees all of it in order until it was too slow."""
    reader, offered, held = subscription(), 0, 0
    expected: list[int] = []

    async def run() -> None:
        nonlocal offered, held, expected
        for size in steps:
            if size is None:
                if expected and reader.ending is None:
                    assert [position for position, _ in await reader.receive()] == expected
                    expected, held = [], 0
                continue
            offered += 1
            fits = not expected or (len(expected) < 3 and held + size <= 100)
            alive = reader.ending is None
            assert offer(reader, offered, b"x" * size) is (fits or not alive)
            if alive and fits:
                expected.append(offered)
                held += size
            assert (reader.ending is Ending.SLOW) is (not alive or not fits)

    trio.run(run)


# All readers.


async def test_a_slow_reader_costs_the_others_nothing(tmp_path: Path) -> None:
    limits = Limits().override({"stream_buffer_length_max": 4})
    async with workshop(tmp_path, limits=limits) as shop:
        (ref,) = await shop.begin(1)
        slow, fast = (shop.system.subscribe(ref, TOPIC, Peek()) for _ in range(2))
        heard = []
        for _ in range(10):
            await shop.ask(ref, Add(by=1))
            heard += await fast.receive()
        assert heard == [(number, b"%d" % number) for number in range(1, 11)]
        assert (slow.ending, fast.ending) == (Ending.SLOW, None)
        assert shop.system.streams.slow_consumers == 1
        assert shop.system.streams.published == 4 + 10


async def test_the_actor_does_not_encode_for_nobody(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        assert not shop.system.has_subscribers(ref, TOPIC)
        first, second = (shop.system.subscribe(ref, TOPIC, Peek()) for _ in range(2))
        assert shop.system.has_subscribers(ref, TOPIC)
        assert not shop.system.has_subscribers(ref, "another topic")
        shop.system.streams.close(first)
        assert shop.system.has_subscribers(ref, TOPIC)
        shop.system.streams.close(second)
        assert not shop.system.has_subscribers(ref, TOPIC)
        assert len(shop.system.streams) == 0


async def test_streams_are_bounded(tmp_path: Path) -> None:
    limits = Limits().override({"streams_max": 4})
    async with workshop(tmp_path, limits=limits) as shop:
        first, second = await shop.begin(1, 2)
        shop.system.payer = lambda: "greedy"
        streams = [shop.system.subscribe(ref, TOPIC, Peek()) for ref in (first, second)]
        with pytest.raises(Overloaded, match="2 streams of this owner are under way"):
            shop.system.subscribe(first, TOPIC, Peek())
        shop.system.payer = lambda: "quiet"
        shop.system.subscribe(first, TOPIC, Peek())
        shop.system.payer = lambda: "greedy"
        for _ in range(2):
            shop.system.streams.close(streams[0])  # the second time changes nothing
        shop.system.subscribe(first, TOPIC, Peek())
        with pytest.raises(Overloaded):
            shop.system.subscribe(first, TOPIC, Peek())


async def test_streams_that_are_closed_leave_nothing_taken(tmp_path: Path) -> None:
    async with workshop(tmp_path, limits=Limits().override({"application_streams_max": 1})) as shop:
        (ref,) = await shop.begin(1)
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        assert shop.system.lasting.running == 1
        shop.system.streams.close(stream)
        assert shop.system.lasting.running == 0


async def test_a_stream_of_nobody_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        with pytest.raises(NotFound):
            shop.system.subscribe(tally(9), TOPIC, Peek())
        assert (shop.system.active, len(shop.system.streams)) == (0, 0)


async def test_a_stream_of_what_was_never_stored_is_refused(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        shop.disk.fill_up()
        await shop.outcome(tally(1), Begin())
        with pytest.raises(NotFound):
            shop.system.subscribe(tally(1), TOPIC, Peek())


async def test_a_busy_actor_takes_subscribers(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        gate = trio.Event()
        call = shop.start(ref, AddSlowly(by=5, gate=gate))
        await trio.testing.wait_all_tasks_blocked()
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        gate.set()
        assert await call.result() == 5
        assert await stream.receive() == [(1, b"5")]


async def test_draining_ends_every_stream_and_opens_none(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        await shop.ask(ref, Add(by=5))
        shop.system.drain()
        assert await stream.receive() == [(1, b"5")]
        assert (await stream.receive(), stream.ending) == ([], Ending.DRAINING)
        with pytest.raises(Overloaded, match="stopping"):
            shop.system.subscribe(ref, TOPIC, Peek())
        # Calls that came before are still answered.
        assert await shop.ask(ref, Add(by=1)) == 6


async def test_nobody_hears_what_was_not_stored(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        heard: list[int] = []
        shop.disk.watchers.append(lambda: heard.append(shop.system.streams.published))
        shop.disk.fill_up()
        await shop.outcome(ref, Add(by=1))
        assert await shop.ask(ref, Add(by=5)) == 5
        assert await stream.receive() == [(1, b"5")]
        assert heard == [0, 0]  # not before the sync either


async def test_closing_twice_is_no_error(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        (ref,) = await shop.begin(1)
        stream = shop.system.subscribe(ref, TOPIC, Peek())
        for _ in range(2):
            shop.system.streams.close(stream)
        assert shop.system.streams.published == 0


def test_a_registry_counts_only_what_was_put_into_a_buffer() -> None:
    streams, mailbox = Streams(Limits(), OwnerShares("lasting connections", 8)), Mailbox(tally(1))
    ended = streams.open(mailbox, TOPIC, "owner")
    ended.end(Ending.GONE)
    streams.publish(mailbox, TOPIC, [(1, b"e")])
    streams.publish(mailbox, "another topic", [(1, b"e")])
    assert (streams.published, streams.slow_consumers) == (0, 0)
