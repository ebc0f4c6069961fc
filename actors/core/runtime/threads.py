"""Threads for work beside the event loop that may wait or take long: each use has places of its own, shared by owner.

Trio has forty threads for a process, in order of arrival, and looks up names of hosts in them too. Forty runs of one
tenant that wait for a mail server or a name server would leave none for anybody. So each use that a tenant can make
long has places here, of which an owner gets at most half. Owns the uses and their places. Does not own what is done
there, nor threads of components that have their own (`computing.py`, reads, contents, passwords).

Who waits for a place belongs to a run, a job or a call, of which there are only so many, so waiting has no bound of its
own.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import trio

from trunkline.actors.core.runtime.owner_shares import OwnerShares

T = TypeVar("T")


class Use(NamedTuple):
    """What threads are used for, in the plural, and how many at a time."""

    what: str
    threads: int


LOOKUPS: Final = Use("lookups of names", 16)
"""A thread waits for up to half a minute, if the name servers of a domain do not answer."""
MAILS: Final = Use("mails", 16)
"""A thread waits for each answer of the mail server for up to `outgoing_timeout_s`."""
RESULTS: Final = Use("pieces of results", 8)
"""A thread waits for the disk."""
SHORT: Final = Use("checks and conversions", 4)
"""What computes for some milliseconds: contexts of TLS, certificates, answers that are compressed, signed logins. The
check of a large RSA key takes up to half a second."""
NEW_KEYS: Final = Use("new private keys", 1)
"""A tenth of a second, at times a second."""


class _Places:
    """The places of a run of Trio, and who is charged for work whose owner is not named."""

    def __init__(self, payer: Callable[[], Hashable]) -> None:
        self.payer = payer
        self._shares: dict[Use, OwnerShares] = {}

    def of(self, use: Use) -> OwnerShares:
        shares = self._shares.get(use)
        if shares is None:
            leaves = 1 if use.threads > 1 else 0
            shares = self._shares[use] = OwnerShares(use.what, use.threads, sys.maxsize, leaves=leaves)
        return shares


_PLACES: trio.lowlevel.RunVar[_Places] = trio.lowlevel.RunVar("places_of_threads")


async def in_thread(use: Use, work: Callable[..., T], *arguments: Any, abandons: bool = False) -> T:
    """Do the work in a thread, at a place of its use that is charged to whom the task works for.

    If the caller is cancelled, it returns when the work has ended; with `abandons` at once, and the place is kept until
    then.
    """
    places = _places()
    return await places.of(use).in_thread(places.payer(), partial(work, *arguments), abandons=abandons)


_NICE: Final = 10
"""What low priority adds to the nice value: the event loop then weighs about ten times as much (`man 7 sched`)."""


def at_low_priority(work: Callable[[], T]) -> T:
    """Do work that computes without the interpreter in a thread of low priority, as do threads that it begins.

    To be called in a thread. Work that needs the interpreter would keep it from the event loop for longer. Raises what
    the work raises, ThreadNotStarted, and MemoryError where none is left for the thread.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            _lower_priority()
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where the work is waited for
            errors.append(error)

    thread = threading.Thread(target=do, name="low-priority", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    if not results:
        raise MemoryError("for a thread of low priority")
    return results[0]


def _lower_priority() -> None:
    """Lower the priority of this thread, which it may not raise again: so it is of no pool."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)  # 0 is the thread that asks, on Linux
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice + _NICE)


def charge(payer: Callable[[], Hashable]) -> None:
    """In this run of Trio, charge threads to `payer`, and look up names of hosts at places, as nobody does it yet."""
    _PLACES.set(_Places(payer))
    before = trio.socket.set_custom_hostname_resolver(_Lookups())
    if before is not None:
        trio.socket.set_custom_hostname_resolver(before)


class _Lookups(trio.abc.HostnameResolver):
    """Looks up names as Trio does, but not in its threads."""

    async def getaddrinfo(self, *arguments: Any) -> Any:
        return await in_thread(LOOKUPS, socket.getaddrinfo, *arguments, abandons=True)

    async def getnameinfo(self, *arguments: Any) -> Any:
        return await in_thread(LOOKUPS, socket.getnameinfo, *arguments, abandons=True)


def places_of(use: Use) -> OwnerShares:
    """The places of a use, for figures and tests."""
    return _places().of(use)


def _places() -> _Places:
    try:
        return _PLACES.get()
    except LookupError:
        places = _Places(lambda: None)
        _PLACES.set(places)
        return places
