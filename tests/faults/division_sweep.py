"""Sweeps of divisions: each system call of `trunkline partition` fails once, in each way.

What must hold after that: the command has told why it ended; the directory holds what it held, in the old number of
partitions or in the new one, or nothing opens it; and the same command completes the division.
"""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.conftest import running_server
from tests.e2e.partitioned import Dump, dump, furnish, results, union
from tests.e2e.server_process import one_sentence, trunkline
from tests.faults.plan import Plan, library
from tests.faults.sweep import Way
from trunkline.store.leftovers import NEW_STORE
from trunkline.store.partitions import partition_directory, stored_count, switch_of


class Divided:
    """A data directory that is divided again and again, from the same beginning."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._kept = folder / "kept"
        self.plan = Plan(folder / "plan", self.data)
        self.outcomes: Counter[str] = Counter()
        self._held: Dump = {}
        self._results: dict[str, bytes] = {}

    async def prepare(self, count: int) -> None:
        """Make a data directory with some applications and so many partitions."""
        async with running_server(self.data) as server:
            for name in ("a", "b"):
                await furnish(server, name)
        for each in (
            2,
            1,
            count,
        ):  # what devices reported is in the runs, and all runs have the numbers of a division
            await self._divide(each)
        self._held, self._results = held(self.data), results(self.data, count)
        self.data.rename(self._kept)

    async def _divide(self, count: int) -> None:
        done = await trunkline("partition", "--count", str(count), "--data", str(self.data))
        assert done.returncode == 0, (done.stdout, done.stderr)
        shutil.rmtree(self.data / "backups", ignore_errors=True)

    async def fail(self, count: int, number: int, way: Way) -> bool:
        """A division in which a call fails; False if it has fewer calls."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(self._kept, self.data)
        command = ("partition", "--count", str(count), "--data", str(self.data))
        self.plan.set(way.at(number))
        done = await trunkline(*command, env=self.plan.variables, preload=library())
        was_struck = self.plan.struck() > 0
        self.plan.lift()
        outcome = "the data was divided"
        if way.kills and done.returncode:
            assert done.returncode == -signal.SIGKILL, (done.returncode, done.stderr)
            outcome = "the division was killed"
        elif done.returncode:
            one_sentence(done)
            outcome = "the division was refused"
        if switch_of(self.data) is not None:
            outcome += " within the switch"
            refused = one_sentence(await trunkline("check", "--data", str(self.data)))
            assert refused.endswith(f"run: trunkline {' '.join(command)}"), refused
        else:
            self._is_whole()
        await self._complete(command)
        self.outcomes[outcome] += 1
        return was_struck

    async def _complete(self, command: tuple[str, ...]) -> None:
        done = await trunkline(*command)
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert stored_count(self.data) == int(command[2])
        self._is_whole()
        checked = await trunkline("check", "--data", str(self.data))
        assert checked.returncode == 0, (checked.stdout, checked.stderr)
        assert not list(self.data.rglob(f"{NEW_STORE}*")), "a new store is left"
        assert not list(self.data.glob("backups/.*")), "half a copy is left"
        for number in range(int(command[2]), 4):
            assert not number or not partition_directory(self.data, number).exists()

    def _is_whole(self) -> None:
        assert held(self.data) == self._held
        assert results(self.data, stored_count(self.data)) == self._results


def held(data: Path) -> Dump:
    """What all partitions hold."""
    return union([dump(data, number) for number in range(stored_count(data))])


async def sweep_divisions(
    folder: Path, way: Way, numbers: Iterable[int], before: int = 1, after: int = 2
) -> Counter[str]:
    """Let these system calls of a division fail; returns what came of it."""
    divided = Divided(folder)
    await divided.prepare(before)
    for number in numbers:
        try:
            if not await divided.fail(after, number, way):
                break
        except AssertionError as wrong:
            calls = ", ".join(map(str, divided.plan.calls()[-40:]))
            raise AssertionError(f"a division, {way.name} at {number}: {wrong}\nCalls: {calls}") from wrong
    return divided.outcomes
