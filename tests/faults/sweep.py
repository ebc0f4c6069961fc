"""Sweeps: each system call of something that the server does fails once, in each way, and the server is looked at.

Owns what fails and what must hold after it: the error was told, or the process has ended with one sentence; what was
acknowledged is there and what was refused is not; `trunkline check` agrees; the next call works. Does not own the
calls (`ledger.py`).
"""

from __future__ import annotations

import errno
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import lmdb
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, ServerProcess, one_sentence, started, trunkline
from tests.faults.ledger import Ledger, Unanswered
from tests.faults.plan import (
    ALLOCATE,
    ANY,
    MKDIR,
    OPEN,
    READ,
    RENAME,
    SYNC,
    TRUNCATE,
    WRITE,
    Fault,
    Plan,
    library,
)
from trunkline.store import codec, migrations
from trunkline.store.checksums import sealed
from trunkline.store.keys import META

SMALL_MAP: Final = {"TRUNKLINE_MAP_SIZE_BYTES": str(2**20)}
GROWS: Final = WRITE | ALLOCATE | MKDIR | RENAME | SYNC
CHANGES: Final = WRITE | TRUNCATE | RENAME | SYNC


Work = Callable[[Server], Awaitable[bool]]
"""Something that a server is asked to do; whether it was done."""


class Way(NamedTuple):
    """A way in which calls of some kinds fail. With `stays` all later ones fail as well.

    With `kills` the process ends at one, as by kill -9, and nothing is told.
    """

    name: str
    calls: int = ANY
    error: int = 0
    part: int = -1
    done: bool = False
    stays: bool = False
    kills: bool = False

    def at(self, number: int, name: str = "", awaits: int = 0) -> Fault:
        """The fault at the call after `number` others of these kinds, from the first one of `awaits` on."""
        times = -1 if self.stays else 1
        return Fault(
            self.calls,
            self.error,
            name,
            after=number,
            times=times,
            part=self.part,
            done=self.done,
            kills=self.kills,
            awaits=awaits,
        )

    async def ended(self, server: ServerProcess, size: int) -> None:
        """A process that this way has ended has said why, in the last line of its log after `size` characters.

        Unless it was killed.
        """
        if self.kills:
            assert await server.ended() == -signal.SIGKILL, server.log[size:]
        else:
            await ended_with_a_sentence(server, size)


WAYS: Final = {
    way.name: way
    for way in (
        Way("EIO", error=errno.EIO),
        Way("EIO-stays", error=errno.EIO, stays=True),
        Way("EIO-but-done", CHANGES, errno.EIO, done=True),
        Way("ENOSPC", GROWS, errno.ENOSPC),
        Way("ENOSPC-stays", GROWS, errno.ENOSPC, stays=True),
        Way("EMFILE", OPEN, errno.EMFILE),
        Way("short", WRITE | READ, part=60),
        Way("kill", kills=True),
        Way("kill-torn", WRITE, part=60, kills=True),
    )
}


class Disk:
    """A data directory below which calls fail, and what the servers on it have acknowledged."""

    def __init__(self, folder: Path, *, flush_s: float | None = None) -> None:
        self.data = folder / "data"
        self.arguments: tuple[str, ...] = ("--limits", "off")
        if flush_s is not None:
            limits = folder / "limits.toml"
            limits.write_text(f'arrival_flush_s = {flush_s}\nsend_state = "off"\n')
            self.arguments = ("--limits", str(limits))
        self.plan = Plan(folder / "plan", self.data)
        self.ledger = Ledger()
        self.env = {**OWNER, **SMALL_MAP, **self.plan.variables}
        self.outcomes: Counter[str] = Counter()
        self.was_struck = False
        """Whether the last fault has hit a call."""

    @asynccontextmanager
    async def server(self) -> AsyncIterator[ServerProcess]:
        """A server on it that was started while nothing failed; drained at the end if it still runs."""
        self.plan.lift()
        async with started(self.data, *self.arguments, env=self.env, preload=library()) as server:
            assert await server.listens(), server.log
            server.token = await server.log_in()
            if not self.ledger.device:
                await self.ledger.prepare(server)
            yield server
            if server.process.poll() is None:
                assert await server.terminate() == 0, server.log

    async def audit(self) -> None:
        """A start after all that: everything is there and works, and `trunkline check` finds nothing."""
        async with self.server() as server:
            await self.ledger.until_it_works(server, self.ledger.send_state)
            await self.ledger.audit(server)
        done = await trunkline("check", "--data", str(self.data))
        assert done.returncode == 0, (done.stdout, done.stderr)

    async def fail_start(self, number: int, way: Way) -> bool:
        """A start in which a call fails; False if it has fewer calls."""
        log = self.data.with_name(f"{self.data.name}.log")
        size = len(log.read_text()) if log.exists() else 0  # before the start, which may fail at once
        self.plan.set(way.at(number))
        async with started(self.data, *self.arguments, env=self.env, preload=library()) as server:
            listens = await server.listens()
            self.was_struck = self.plan.struck() > 0
            self.plan.lift()
            if listens:
                server.token = await server.log_in()
                if not self.ledger.device:
                    await self.ledger.prepare(server)
                await self.ledger.until_it_works(server, self.ledger.send_state)
                await self.ledger.audit(server)
                assert await server.terminate() == 0, server.log
            else:
                await way.ended(server, size)
                assert "Traceback" not in server.log[size:], server.log[size:]
        refused = "the start was killed" if way.kills else "the start was refused"
        self.outcomes["the server started" if listens else refused] += 1
        return self.was_struck

    async def fail_work(self, server: ServerProcess, call: Work, fault: Fault, way: Way) -> bool:
        """A call during which a system call fails; False if it takes fewer.

        If the server lives, the same call works then.
        """
        size = len(server.log)
        self.plan.forget()
        self.plan.set(fault)
        try:
            outcome = "the call succeeded" if await call(server) else "the call was refused"
        except Unanswered:
            self.plan.lift()
            await way.ended(server, size)
            outcome = "the server ended"
        self.was_struck = self.plan.struck() > 0
        self.plan.lift()
        if outcome != "the server ended":
            try:
                await self.ledger.until_it_works(server, call)
            except Unanswered:
                await way.ended(server, size)
                outcome = "the server ended after an answer"
        if self.was_struck:
            self.outcomes[outcome] += 1
        return self.was_struck

    async def fail_backup(self, number: int, way: Way, target: Path) -> bool:
        """A backup in which a call fails: either it is whole, or it does not exist."""
        self.plan.set(way.at(number))
        command = ("backup", str(target), "--data", str(self.data))
        done = await trunkline(*command, env=self.plan.variables, preload=library())
        self.was_struck = self.plan.struck() > 0
        self.plan.lift()
        outcome = "the backup was refused" if done.returncode else "the backup was made"
        exists = await trio.Path(target).exists()
        if way.kills and done.returncode:
            assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr)
            outcome = "the backup was killed"
            if not exists:  # what it leaves is in the way of no other one
                assert (await trunkline(*command)).returncode == 0
                exists = True
        elif done.returncode:
            one_sentence(done)
            assert way.stays or not exists, "a backup that was refused exists"
        if exists:
            checked = await trunkline("check", "--data", str(target))
            assert checked.returncode == 0, (checked.stdout, checked.stderr)
        self.outcomes[outcome] += 1
        return self.was_struck


async def ended_with_a_sentence(server: ServerProcess, size: int) -> None:
    """A process that has ended by itself has said why, in the last line of its log after `size` characters."""
    code = await server.ended()
    said = server.log[size:]
    assert code == 1, (code, said)
    assert said.strip().splitlines()[-1].startswith("trunkline: "), said


async def _each(step: Callable[[int], Awaitable[bool]], disk: Disk, what: str, numbers: Iterable[int]) -> int:
    """Make steps until one has no such call any more; returns how many there were."""
    runs = 0
    for number in numbers:
        runs += 1
        try:
            if not await step(number):
                break
        except AssertionError as wrong:
            calls = ", ".join(map(str, disk.plan.calls()[-40:]))
            raise AssertionError(f"{what} at {number}: {wrong}\nCalls: {calls}") from wrong
    return runs


async def sweep_work(disk: Disk, work: str, way: Way, numbers: Iterable[int]) -> int:
    """Let these system calls of a call fail, in one server as long as it lives; returns how many there were."""
    left, runs, over = iter(numbers), 0, False
    while not over:
        async with disk.server() as server:
            if way.kills:
                await disk.ledger.audit(server)

            async def step(number: int, server: ServerProcess = server) -> bool:
                nonlocal over
                over = not await disk.fail_work(server, disk.ledger.works[work], way.at(number), way)
                return not over and server.process.poll() is None

            before = runs
            runs += await _each(step, disk, f"{work}, {way.name}", left)
            over = over or runs == before
    await disk.audit()
    return runs


async def sweep_starts(disk: Disk, way: Way, numbers: Iterable[int]) -> int:
    """Let these system calls of a start fail, each in a start of its own."""

    async def step(number: int) -> bool:
        goes_on = await disk.fail_start(number, way)
        async with disk.server() as server:
            await disk.ledger.until_it_works(server, disk.ledger.send_state)
        return goes_on

    runs = await _each(step, disk, f"a start, {way.name}", numbers)
    await disk.audit()
    return runs


async def sweep_migrations(disk: Disk, way: Way, numbers: Iterable[int]) -> int:
    """Let these system calls of a start fail that brings the store from an older format to ours."""

    async def step(number: int) -> bool:
        set_format(disk.data, min(migrations.MIGRATIONS))
        goes_on = await disk.fail_start(number, way)
        async with disk.server() as server:
            await disk.ledger.until_it_works(server, disk.ledger.send_state)
        assert not list(disk.data.glob("backups/.*")), "half a copy is left"
        shutil.rmtree(disk.data / "backups")
        return goes_on

    async with disk.server():
        pass
    runs = await _each(step, disk, f"a migration, {way.name}", numbers)
    await disk.audit()
    return runs


def set_format(data: Path, number: int) -> None:
    """Let a store say that it is in an older format, whose data may be the same."""
    value = sealed(migrations.FORMAT_KEY, codec.encode(number))
    with lmdb.open(str(data / "store"), max_dbs=32) as env, env.begin(write=True) as transaction:
        db = env.open_db(META.encode(), txn=transaction)
        assert transaction.put(migrations.FORMAT_KEY, value, db=db)


async def sweep_first_starts(folder: Path, way: Way, numbers: Iterable[int]) -> Counter[str]:
    """Let these system calls of the first start fail, each in a directory of its own; returns what came of it."""
    outcomes: Counter[str] = Counter()
    for number in numbers:
        place = folder / f"{way.name}-{number}"
        place.mkdir(parents=True)
        disk = Disk(place)

        async def step(number: int, disk: Disk = disk) -> bool:
            return await disk.fail_start(number, way)

        await _each(step, disk, f"a first start, {way.name}", [number])
        await disk.audit()
        outcomes += disk.outcomes
        if not disk.was_struck:
            break
    return outcomes


async def sweep_backups(disk: Disk, way: Way, numbers: Iterable[int]) -> int:
    """Let these system calls of a backup fail, while a server runs; returns how many there were."""
    async with disk.server() as server:
        assert await disk.ledger.upload(server)

        async def step(number: int) -> bool:
            return await disk.fail_backup(number, way, disk.data / f"copy {number}")

        runs = await _each(step, disk, f"a backup, {way.name}", numbers)
    await disk.audit()
    return runs
