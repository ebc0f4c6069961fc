"""One measurement: the quiet tenant alone, and then beside one attack from so many applications or owners.

Owns the order of the steps, the process of the attack, and the verdict. Does not own the server, which is running.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.neighbours.attacker import Answers, Client, Orders
from trunkline.bench.neighbours.attacks import Attack
from trunkline.bench.neighbours.place import Place
from trunkline.bench.neighbours.quiet import Measured, QuietTenant
from trunkline.bench.neighbours.tenant import Account, Tenant

Spread = Literal["one", "thirty", "owners"]
SPREADS: tuple[Spread, ...] = ("one", "thirty", "owners")
"""One application; thirty of one owner; one of each of thirty owners."""
MANY = 30
P99_MS_MAX = 50.0
RATIO_MAX = 3.0
"""A kind of calls passes if its p99 is at most P99_MS_MAX, or RATIO_MAX times that of the quiet tenant alone."""
PREPARING_MAX = 4


class Beside(msgspec.Struct, kw_only=True, rename="camel"):
    """What one measurement gave."""

    attack: str
    spread: Spread
    alone: dict[str, Measured]
    beside: dict[str, Measured]
    answers: Answers

    def slow(self) -> list[str]:
        """The kinds of calls that took too long."""
        return [name for name, one in self.beside.items() if one.p99_ms > self.bound_ms(name)]

    def bound_ms(self, name: str) -> float:
        """The longest p99 that a kind of calls may have."""
        return max(P99_MS_MAX, RATIO_MAX * self.alone[name].p99_ms)

    def errors(self) -> dict[str, dict[str, int]]:
        """The errors of each kind of calls that had some."""
        return {name: one.errors for name, one in self.beside.items() if one.errors}

    @property
    def passed(self) -> bool:
        """Whether the quiet tenant was neither refused nor too slow, and the attack took place."""
        return not self.slow() and not self.errors() and self.answers.ran


async def measure(
    url: str, quiet: Account, greedy: Sequence[Account], attack: Attack, spread: Spread, period_s: float
) -> Beside:
    """Measure the quiet tenant alone and beside an attack. If there is one owner, it is the first of `greedy`.

    Raises BenchError.
    """
    async with trio.open_nursery() as nursery:
        calm = await Tenant.sign_in(url, quiet, "10.1.0.1", 1)
        tenant = await QuietTenant.prepare(calm, nursery)
        try:
            clients = await _prepare(url, greedy, attack, spread)
            await tenant.measure(1.0)
            alone = await tenant.measure(period_s)
            async with _attacking(Orders(url, clients)) as attacking:
                beside = await tenant.measure(period_s)
                answers = await attacking.end()
        finally:
            tenant.close()
            calm.close()
            nursery.cancel_scope.cancel()
    return Beside(attack=attack.name, spread=spread, alone=alone, beside=beside, answers=answers)


async def _prepare(url: str, greedy: Sequence[Account], attack: Attack, spread: Spread) -> list[Client]:
    """Make what the attack needs, in all its places."""
    if spread == "owners":
        owners = greedy[:MANY]
        tenants = [await Tenant.sign_in(url, one, f"10.2.0.{at}", 1) for at, one in enumerate(owners)]
    else:
        tenants = [await Tenant.sign_in(url, greedy[0], "10.2.0.1", 1 if spread == "one" else MANY)]
    all_places = [(tenant, application) for tenant in tenants for application in tenant.applications]
    places = [Place(tenant, application, len(all_places)) for tenant, application in all_places]
    clients: list[Client] = []
    limiter = trio.CapacityLimiter(PREPARING_MAX)

    async def prepare(place: Place) -> None:
        async with limiter:
            clients.extend(await attack.prepare(place))

    async with trio.open_nursery() as nursery:
        for place in places:
            nursery.start_soon(prepare, place)
    for tenant in tenants:
        tenant.close()
    return clients


class _attacking:  # noqa: N801 - used like a function
    """The process of an attack, which has begun when this is entered, and is ended with it."""

    def __init__(self, orders: Orders) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="trunkline-neighbours-")
        self._orders = Path(self._directory.name) / "orders"
        self._orders.write_bytes(msgspec.msgpack.encode(orders))
        self._said = b""

    async def __aenter__(self) -> _attacking:
        command = [sys.executable, "-m", "trunkline.bench.neighbours.attacker", str(self._orders)]
        self._process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if not await self._line():
            raise BenchError("The process of the attack ended before it began.")
        return self

    async def end(self) -> Answers:
        """End the attack; what was answered."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        line = await self._line()
        if not line:
            raise BenchError("The process of the attack ended without a result.")
        return msgspec.json.decode(line, type=Answers)

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    await pipe.aclose()
        self._directory.cleanup()

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._said:
            if not (more := await self._process.stdout.receive_some()):
                return b""
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line
