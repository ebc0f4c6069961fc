"""The order in which calls begin: who makes few is not behind those of who makes many, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.http.both_paths import FAST_ROUTES, Twin, both_paths, request
from tests.patience import PATIENCE_S
from trunkline.actors.core.runtime.precedence import LOOP
from trunkline.actors.core.runtime.work import Work
from trunkline.http.calls import call_turns
from trunkline.http.calls.call_turns import PASS_NS, CallTurns

COMMITS_S = 0.01


def turns_of(commits: tuple[int, float] = (0, 0.0)) -> CallTurns:
    """Turns in which the name of some work is who pays for it."""
    return CallTurns(lambda work: work.name, lambda: commits)


@pytest.fixture(autouse=True)
def no_room() -> Iterator[None]:
    """This pass of the loop has no room for calls any more."""
    LOOP.calls_ns = 1_000 * PASS_NS
    yield
    LOOP.calls_ns = 0


async def begun(turns: CallTurns, count: int, order: list[str]) -> None:
    """Let calls begin until so many have. Each pass has room for some: the watchdog of the loop is not there."""
    LOOP.calls_ns = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        with trio.fail_after(PATIENCE_S):
            while len(order) < count:
                await trio.lowlevel.checkpoint()
                LOOP.calls_ns = 0
        nursery.cancel_scope.cancel()


def put_off(turns: CallTurns, order: list[str], *owners: str) -> None:
    for owner in owners:
        assert turns.put_off(Work("call", owner), partial(order.append, owner))


async def test_owners_take_turns_a_call_at_a_time() -> None:
    turns, order = turns_of(), list[str]()
    put_off(turns, order, "a", "a", "a", "a", "b", "b", "c")
    await begun(turns, 7, order)
    assert order == ["a", "b", "c", "a", "b", "a", "a"]
    assert turns.waiting == 0


async def test_who_had_no_call_waiting_comes_before_all_who_had() -> None:
    turns, order = turns_of(), list[str]()

    def more(owner: str) -> None:
        order.append(owner)
        if len(order) == 3:
            put_off(turns, order, "quiet")

    for _ in range(3):
        for owner in ("a", "b"):
            assert turns.put_off(Work("call", owner), partial(more, owner))
    await begun(turns, 7, order)
    assert order == ["a", "b", "a", "quiet", "b", "a", "b"]


async def test_who_comes_again_at_once_is_not_first_each_time() -> None:
    turns, order = turns_of(), list[str]()

    def again(left: int) -> None:
        order.append("eager")
        if left:
            assert turns.put_off(Work("call", "eager"), partial(again, left - 1))

    assert turns.put_off(Work("call", "eager"), partial(again, 3))
    put_off(turns, order, "a", "a", "b", "b")
    await begun(turns, 8, order)
    assert order[:3] == ["eager", "a", "b"]
    assert order[3:6] == ["eager", "a", "b"]


async def test_only_as_many_begin_as_a_pass_has_room_for() -> None:
    turns, order = turns_of(), list[str]()

    def long(owner: str) -> None:
        order.append(owner)
        LOOP.calls_ns += PASS_NS

    for owner in ("a", "b", "c"):
        assert turns.put_off(Work("call", owner), partial(long, owner))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turns.run)
        for passed in ("a", "b", "c"):
            LOOP.calls_ns = 0  # a pass begins, as the watchdog of the loop would say
            for _ in range(5):
                await trio.lowlevel.checkpoint()
            assert order[-1] == passed
        nursery.cancel_scope.cancel()
    assert order == ["a", "b", "c"]


async def test_a_pass_has_room_for_half_as_long_as_a_commit_takes() -> None:
    turns, order = turns_of((10, 10 * COMMITS_S)), list[str]()
    put_off(turns, order, "a", "b")
    await begun(turns, 2, order)
    LOOP.calls_ns = round(COMMITS_S / 2 * 1e9) - 1
    assert turns.has_room
    LOOP.calls_ns += 1
    assert not turns.has_room


async def test_calls_of_one_owner_alone_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_turns, "ALONE_NS", 0)
    turns, order = turns_of(), list[str]()
    put_off(turns, order, "a")
    await begun(turns, 1, order)
    LOOP.calls_ns = PASS_NS
    assert not turns.has_room
    assert not turns.put_off(Work("call", "a"), lambda: None)
    with trio.fail_after(PATIENCE_S):
        await turns.begin(Work("call", "a"))
    put_off(turns, order, "b", "a")
    await begun(turns, 3, order)
    assert order == ["a", "b", "a"], "now there are two"


async def test_a_task_that_gives_up_leaves_its_turn() -> None:
    turns, order = turns_of(), list[str]()

    async def call(owner: str) -> None:
        await turns.begin(owner)
        order.append(owner)

    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def gives_up() -> None:
            with scope:
                await call("a")

        nursery.start_soon(gives_up)
        await wait_all_tasks_blocked()
        nursery.start_soon(call, "a")
        nursery.start_soon(call, "b")
        await wait_all_tasks_blocked()
        assert turns.waiting == 3
        scope.cancel()
        await wait_all_tasks_blocked()
        assert turns.waiting == 2
        await begun(turns, 2, order)
    assert sorted(order) == ["a", "b"]


async def send(twin: Twin, nursery: trio.Nursery, data: bytes, owner: str, answers: list[str]) -> None:
    """Send a request on a connection of its own, and note when its answer comes."""
    peer = await twin.wired.connect()

    async def answered() -> None:
        await peer.answer()
        answers.append(owner)

    nursery.start_soon(answered)
    await peer.send(data)


@pytest.mark.parametrize("known", [True, False])
async def test_the_call_of_somebody_else_does_not_wait_for_all_of_a_flood(
    tmp_path: Path, *, known: bool
) -> None:
    """Calls that are answered by callbacks, because such a call was made before, and calls of tasks."""
    route = FAST_ROUTES["device.sendState"]
    async with both_paths(tmp_path / "data") as paths, trio.open_nursery() as nursery:
        twin, answers = paths.fast, list[str]()
        turns = twin.dispatcher.call_turns
        flood, other = (request(twin, route, b'{"data":{"a":1}}', token=token) for token in ("", "x"))
        if known:
            LOOP.calls_ns = 0
            assert (await twin.wired.ask(flood)).status == 200
            LOOP.calls_ns = 1_000 * PASS_NS
        turns._measure_commits()
        turns._pass_ns = turns._call_ns = 1  # one call a pass
        with trio.fail_after(PATIENCE_S):
            for _ in range(8):
                await send(twin, nursery, flood, "flood", answers)
            while turns.waiting < 8:
                await trio.lowlevel.checkpoint()
            await send(twin, nursery, other, "somebody else", answers)
            while turns.waiting < 9:
                await trio.lowlevel.checkpoint()
        assert answers == []
        await begun(turns, 9, answers)
    assert answers.index("somebody else") <= 4, "it began as the second, and took as long as any"
