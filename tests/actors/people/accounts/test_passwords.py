"""Passwords are hashed in few threads, in which those who ask take turns."""

from __future__ import annotations

import os
import threading

import argon2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trunkline.actors.people.accounts import passwords
from trunkline.actors.people.accounts.passwords import asks_from, hash_password, use_threads, verify_password


@pytest.mark.parametrize("of_addresses", [True, False])
async def test_many_log_ins_of_one_delay_that_of_another_by_one_hash(of_addresses: bool) -> None:
    payer = ""
    use_threads(1, lambda: payer)
    stored, ended = await hash_password("right"), []

    async def log_in(who: str) -> None:
        nonlocal payer
        if of_addresses:
            asks_from.set(who)
        else:
            payer = who
        assert await verify_password(stored, "right")
        ended.append(who)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(log_in, "greedy")
        await wait_all_tasks_blocked()
        before = len(ended)
        nursery.start_soon(log_in, "quiet")
    assert ended.index("quiet") - before <= 2
    assert not await verify_password(stored, "wrong")


def test_hashes_cost_little_in_tests() -> None:
    assert argon2.extract_parameters(passwords._hasher.hash("right")).memory_cost == 8


@pytest.mark.usefixtures("full_hashes")
def test_hashes_cost_what_the_server_wants_where_a_test_says_so() -> None:
    assert argon2.extract_parameters(passwords._hasher.hash("right")) == argon2.profiles.RFC_9106_LOW_MEMORY


async def test_hashes_are_made_at_low_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of Argon2 inherit it. They would take their part of the cores from the event loop."""
    seen: list[int] = []

    class Hasher(argon2.PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            return super().hash(password, salt=salt)

    monkeypatch.setattr(passwords, "_hasher", Hasher(time_cost=1, memory_cost=8, parallelism=1))
    await hash_password("right")
    assert seen == [min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)]
