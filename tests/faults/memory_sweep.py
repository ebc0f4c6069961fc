"""A sweep of memory: a server that gets so much more and no more, while it is called from all sides, again and again.

Owns the limit of the process (RLIMIT_AS) and what must hold after it is lifted. Does not own the calls (`ledger.py`).
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import psutil
import trio

from tests.e2e.server_process import ServerProcess
from tests.faults.ledger import Unanswered
from tests.faults.sweep import Disk, Work

ROOM_BYTES: Final = (0, 4096, 50_000, 200_000, 1_000_000, 3_000_000, 9_000_000, 20_000_000)
AT_ONCE: Final = 3
NATIVE_ENDS: Final = {
    int(signal.SIGABRT): "a native library ended it",
    int(signal.SIGSEGV): "a native library crashed",
}
THREADS_END_S: Final = 11
"""A thread that nobody needs ends after ten seconds: then the next work starts one."""
WORKS: Final = (
    "a state",
    "many states",
    "states one by one",
    "a command",
    "a device",
    "a file",
    "a large file",
)


async def sweep_memory(disk: Disk, rounds: Iterable[int]) -> None:
    """Take the memory away in each round, in another one as soon as a server has ended."""
    disk.ledger.vague.add("the fault is logged")  # of a request that could not be read, or answered
    disk.ledger.vague.add("ended before it was complete")  # of a body for which the system has no memory
    disk.ledger.told[400] = "Validation"
    left = iter(rounds)
    number = next(left, None)
    while number is not None:
        async with disk.server() as server:
            while number is not None and server.process.poll() is None:
                await _round(disk, server, number)
                number = next(left, None)
    await disk.audit()


async def _round(disk: Disk, server: ServerProcess, number: int) -> None:
    """Call with little memory, and then with enough: each works, unless the server has ended and said why."""
    works = [disk.ledger.works[name] for name in WORKS]
    if number % 2:
        await trio.sleep(THREADS_END_S)
    with _limited(server, ROOM_BYTES[number % len(ROOM_BYTES)]):
        async with trio.open_nursery() as nursery:
            for work in works * AT_ONCE:
                nursery.start_soon(_tried, server, work)
    try:
        for work in works:
            await disk.ledger.until_it_works(server, work)
        disk.outcomes["the server went on"] += 1
    except Unanswered:
        code = await server.ended()
        said = server.log.strip().splitlines()[-1]
        assert -code in NATIVE_ENDS or said.startswith("trunkline: "), (code, server.log)
        disk.outcomes[NATIVE_ENDS.get(-code, "the server ended")] += 1


async def _tried(server: ServerProcess, work: Work) -> None:
    with suppress(Unanswered):
        await work(server)


@contextmanager
def _limited(server: ServerProcess, room_bytes: int) -> Iterator[None]:
    """For a while the server gets so much more memory than it has now."""
    pid, unlimited = server.process.pid, resource.RLIM_INFINITY
    bytes_max = psutil.Process(pid).memory_info().vms + room_bytes
    resource.prlimit(pid, resource.RLIMIT_AS, (bytes_max, unlimited))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it may have ended
            resource.prlimit(pid, resource.RLIMIT_AS, (unlimited, unlimited))
