"""Passwords: hashed with Argon2id in a worker thread, so that a login does not block the event loop.

A hash takes a core for 50 ms, so those who want one take turns: the address that logs in to the API (`asks_from`), else
the owner who is charged for the work. So many logins from one address delay that of another by one hash.

Argon2 computes in four threads of its own for each hash, which would take their part of all cores from the event loop;
so it is called at low priority, which its threads inherit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import partial
from typing import Final, TypeVar

import argon2
import trio

from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.threads import at_low_priority
from trunkline.actors.core.values.errors import Invalid
from trunkline.limits.table import Limits

T = TypeVar("T")

_hasher = argon2.PasswordHasher()

asks_from: ContextVar[str | None] = ContextVar("asks_from", default=None)
"""The address from which the task checks a password for somebody whom nobody knows yet."""
_WAITING_MAX: Final = 1_024
"""Hashes that wait for a thread. Logins have a lower bound (`logins_checking_max`)."""


class _Turns:
    """The threads of a run, and who is charged for work that comes from no address."""

    def __init__(self, threads: int, payer: Callable[[], Hashable]) -> None:
        self.shares = OwnerShares("passwords", threads, _WAITING_MAX)
        self.payer = payer


_turns: trio.lowlevel.RunVar[_Turns] = trio.lowlevel.RunVar("argon2_turns")


_LENGTH_MIN = 12


def check_new_password(password: str) -> None:
    """Raise `Invalid` if `password` is too weak."""
    kinds = (str.islower, str.isupper, str.isdigit, lambda sign: not sign.isalnum())
    strong = all(any(kind(sign) for sign in password) for kind in kinds)
    if len(password) < _LENGTH_MIN or len(password) > 2048 or not strong:
        raise Invalid(
            "password: needs 12 characters or more, with a lower-case and an upper-case letter, a digit and a sign."
        )


async def simulate_verification() -> None:
    """Take as long as one verification, so that an unknown address is not refused sooner than a wrong password."""
    await verify_password(_impossible_hash(), "nobody")


def _impossible_hash() -> str:
    """A hash that no password matches and that costs as much to verify as any other."""
    unpadded = ("A" * 22, "A" * 43)  # 16 bytes of salt and 32 of digest in base64
    cost = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v=19${cost}${'$'.join(unpadded)}"


async def hash_password(password: str) -> str:
    """The Argon2id hash to store, which contains its salt and its cost parameters."""
    return await _in_turn(lambda: _hasher.hash(password))


async def verify_password(password_hash: str, password: str) -> bool:
    """Whether `password` is the one that was hashed."""

    def check() -> bool:
        try:
            return _hasher.verify(password_hash, password)
        except argon2.exceptions.VerifyMismatchError:
            return False

    return await _in_turn(check)


def use_threads(number: int, payer: Callable[[], Hashable] = lambda: None) -> None:
    """Hash at most `number` passwords at once in this run of Trio, charged to `payer` where no address asks."""
    _turns.set(_Turns(number, payer))


async def _in_turn(work: Callable[[], T]) -> T:
    try:
        turns = _turns.get()
    except LookupError:
        use_threads(Limits().password_threads_max)
        turns = _turns.get()
    owner = asks_from.get() or turns.payer()
    return await turns.shares.in_thread(owner, partial(at_low_priority, work))
