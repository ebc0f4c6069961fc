"""Random calls with few keys, side by side, on a real store with faults, cancelled callers and restarts.

Whatever happens in between: a key of a caller has at most one effect; if a call succeeded, exactly one, the one of that
call's body; and every success with that key is the same answer.
"""

from __future__ import annotations

import errno
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
import trio

from tests.actors.house import START_MS, House, ManualClock, running_again, running_house
from tests.http.both_paths import make_table
from trunkline.actors.access.authority import Principal
from trunkline.actors.core.records.kept_answers import answer_problems
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.request import Request, Response
from trunkline.http.routes import TABLE
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings

CLIENTS, CALLS, LIVES = 6, 40, 3
LATER = "later"
OPERATIONS = ("state", "command", "row", "rows", "event")


class Said(NamedTuple):
    """What a call says: its caller and key, the operation, and which of its bodies it has."""

    caller: int
    operation: str
    key: int
    body: int

    @property
    def mark(self) -> str:
        """A text in the effect by which it is found."""
        return "-".join(map(str, self))

    @property
    def owner(self) -> tuple[Any, ...]:
        """The caller, the operation, and the key."""
        return self.caller, self.operation, self.key


class TickingClock(ManualClock):
    """Each look at the clock is a millisecond later, so that no two states have the same time."""

    def wall_ms(self) -> int:
        self.pass_s(0.001)
        return super().wall_ms()


class Bench:
    """A server without its network, and the calls of two callers."""

    def __init__(self, house: House, data_dir: Path, device: bytes, table: bytes) -> None:
        self.house = house
        house.system.clock = TickingClock(house.clock.wall_ms() + 1000)
        self.dispatcher: Dispatcher = make_dispatcher(house.system, Settings(data_dir=str(data_dir)))
        application = f"/applications/{house.application.hex()}"
        self.paths = {
            "state": f"{application}/devices/{device.hex()}/state",
            "command": f"{application}/devices/{device.hex()}/command",
            "row": f"{application}/data-tables/{table.hex()}/rows",
            "rows": f"{application}/data-tables/{table.hex()}/rows",
            "event": f"{application}/events",
        }
        self.callers = [
            Principal(
                kind="application",
                scopes=frozenset({"all.Application"}),
                expires_ms=None,
                application_id=house.application,
                token_id=bytes([number]) * 12,
            )
            for number in (1, 2)
        ]

    async def ask(
        self, method: str, path: str, caller: int = 0, body: Any = None, **headers: str
    ) -> Response:
        given = {b"content-type": b"application/json"}
        given |= {name.replace("_", "-").encode(): text.encode() for name, text in headers.items()}
        path, _, query = path.partition("?")
        sent = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, path, query.encode(), given, sent, "")
        match = TABLE.match(path)
        assert match is not None
        admission = self.dispatcher.admissions.check(
            match[0][method], match[1], request, self.callers[caller]
        )
        return await self.dispatcher.handle(request, None, admission)

    async def say(self, said: Said) -> Response:
        bodies: dict[str, Any] = {
            "state": {"data": {"label": said.mark}},
            "command": {"name": said.mark},
            "row": {"label": said.mark},
            "rows": [{"label": said.mark}, {"label": LATER}],
            "event": {"level": "info", "state": "new", "subject": said.mark},
        }
        return await self.ask(
            "POST",
            self.paths[said.operation],
            said.caller,
            bodies[said.operation],
            idempotency_key=f'"{said.operation} {said.key}"',
        )

    async def effects(self) -> Counter[str]:
        async def read(operation: str, query: str) -> Any:
            response = await self.ask("GET", f"{self.paths[operation]}?{query}")
            assert response.status == 200, response.body
            return msgspec.json.decode(response.body)

        marks = [each["data"]["label"] for each in await read("state", "limit=1000&since=1")]
        marks += [each["name"] for each in await read("command", "limit=1000&since=1")]
        marks += [each["label"] for each in (await read("row", "limit=5000"))["items"]]
        marks += [each["subject"] for each in (await read("event", "perPage=1000"))["items"]]
        return Counter(marks)


class Faults:
    """The seam before a sync: some commits fail."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.on = True

    def __call__(self) -> float:
        if self.on and self._random.random() < 0.15:
            raise OSError(errno.EIO, "told to fail")
        return 0.0


@asynccontextmanager
async def life(data_dir: Path, before: list[Any]) -> AsyncIterator[Bench]:
    """A server on the data directory: the first one, or the next one."""
    if not before:
        async with running_house(data_dir) as house:
            table, _ = await make_table(house)
            before += [house, await house.device(), table]
            yield Bench(house, data_dir, *before[1:])
    else:
        async with running_again(data_dir, before[0], before[0].system.clock.wall_ms() - START_MS) as house:
            before[0] = house
            yield Bench(house, data_dir, *before[1:])


@pytest.mark.parametrize("seed", range(6))
async def test_each_key_has_one_effect_and_one_answer(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    told: dict[tuple[Any, ...], set[tuple[Said, int, bytes]]] = defaultdict(set)
    asked: set[Said] = set()
    statuses: Counter[int] = Counter()
    before: list[Any] = []

    async def client(bench: Bench) -> None:
        for number in range(CALLS):
            newest = number // 4
            said = Said(
                random.randrange(2),
                random.choice(OPERATIONS),
                random.randrange(newest, newest + 3),
                int(random.random() < 0.1),
            )
            asked.add(said)
            with trio.CancelScope() as scope:
                if random.random() < 0.2:
                    scope.cancel()
                response = await bench.say(said)
                statuses[response.status] += 1
                if response.status < 300:
                    told[said.owner].add((said, response.status, response.body))
            for _ in range(random.randrange(3)):
                await trio.lowlevel.checkpoint()

    for _ in range(LIVES):
        async with life(tmp_path / "data", before) as bench:
            faults = Faults(random)
            bench.house.system.journal._sync_delay_s = faults
            async with trio.open_nursery() as nursery:
                for _ in range(CLIENTS):
                    nursery.start_soon(client, bench)
            faults.on = False
            with bench.house.system.store.snapshot() as snapshot:
                assert not list(answer_problems(snapshot))
    async with life(tmp_path / "data", before) as bench:
        effects = await bench.effects()
    by_key: Counter[tuple[Any, ...]] = Counter()
    for said in asked:
        by_key[said.owner] += effects[said.mark]
    assert max(by_key.values()) == 1
    for owner, answers in told.items():
        assert len(answers) == 1, (owner, answers)
        ((said, _, _),) = answers
        assert effects[said.mark] == 1
    assert statuses.keys() <= {200, 201, 409, 422, 500}
    assert min(statuses[status] for status in (200, 201, 409, 422, 500)) > 0, statuses
    assert bench.dispatcher.idempotent_calls.repeated == 0
