"""Passwords: hashed with Argon2id in a worker thread, so that a log-in does not block the event loop."""

from __future__ import annotations

import argon2
import trio

from trunkline.actors.values.errors import Invalid
from trunkline.limits.table import Limits

_hasher = argon2.PasswordHasher()


_threads: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("argon2_threads")


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
    return await trio.to_thread.run_sync(_hasher.hash, password, limiter=_limiter())


async def verify_password(password_hash: str, password: str) -> bool:
    """Whether `password` is the one that was hashed."""

    def check() -> bool:
        try:
            return _hasher.verify(password_hash, password)
        except argon2.exceptions.VerifyMismatchError:
            return False

    return await trio.to_thread.run_sync(check, limiter=_limiter())


def use_threads(number: int) -> None:
    """Hash at most `number` passwords at once in this run of Trio."""
    _threads.set(trio.CapacityLimiter(number))


def _limiter() -> trio.CapacityLimiter:
    """The limiter of this run. Without `use_threads` the default limit applies."""
    try:
        return _threads.get()
    except LookupError:
        use_threads(Limits().password_threads_max)
        return _threads.get()
