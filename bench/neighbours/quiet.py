"""The quiet tenant: a few calls a second of each kind, and how long each takes.

Owns what the quiet tenant asks for and its clock. Each call is sent when it is due, whatever has become of those
before it, and is measured from its sending, a new connection included. All that is not an answer from 200 to 299 is an
error; what is not answered after CALL_TIMEOUT_S counts with that time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import msgspec
import trio

from trunkline.bench.client import Connection
from trunkline.bench.errors import ApiError, WireError
from trunkline.bench.event_stream import open_events
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import DAY_MS
from trunkline.bench.neighbours.tenant import Tenant
from trunkline.bench.session import Json

CALLS_A_SECOND = 10.0
LOGINS_A_SECOND = 1.0
"""A login is made to take a core for 50 ms, and nobody logs in more often."""
CALL_TIMEOUT_S = 30.0
DEVICES = 10
"""So many that no throttle of a device is reached."""
WEBHOOKS = 2
ROWS = 200
FILE_BYTES = 100_000
COMMAND = "neighbours"

ADD: Json = {
    "id": "n",
    "type": "MathNode",
    "config": {"statements": [{"expression": "{{data.body.level}} * 2", "resultPath": "data.x"}]},
    "outputIds": [["r"]],
}
SCRIPT: Json = {
    "id": "n",
    "type": "RawFunctionNode",
    "config": {"script": "payload.data.x = payload.data.body.level * 2;"},
    "outputIds": [["r"]],
}
REPLY: Json = {
    "id": "r",
    "type": "WebhookReplyNode",
    "config": {"responseCodeTemplate": "200", "bodyTemplate": "{{data.x}}", "bodyTemplateType": "string"},
}


class Measured(msgspec.Struct, kw_only=True, rename="camel"):
    """The calls of one kind in one period."""

    calls: int
    errors: dict[str, int]
    p50_ms: float
    p99_ms: float
    max_ms: float


class _Lane:
    """The calls of one kind, one after the other of `requests`."""

    def __init__(self, name: str, tenant: Tenant, requests: Sequence[bytes], rate: float) -> None:
        self.name = name
        self.rate = rate
        self.recorder = LatencyRecorder()
        self.errors: Counter[str] = Counter()
        self._origin = tenant.session.origin
        self._requests = requests
        self._free: list[Connection] = []

    async def send(self, period_s: float, offset_s: float) -> None:
        """Send the calls of a period, and wait for their answers."""
        self.recorder, self.errors = LatencyRecorder(), Counter()
        began_s = trio.current_time() + offset_s
        async with trio.open_nursery() as nursery:
            for number in range(max(1, round(period_s * self.rate))):
                await trio.sleep_until(began_s + number / self.rate)
                nursery.start_soon(self._call, number)

    def measured(self) -> Measured:
        """The calls of the last period."""
        recorder = self.recorder
        return Measured(
            calls=recorder.count,
            errors=dict(self.errors),
            p50_ms=recorder.percentile(50) * 1e3,
            p99_ms=recorder.percentile(99) * 1e3,
            max_ms=recorder.max_s * 1e3,
        )

    def close(self) -> None:
        """Close the connections."""
        while self._free:
            self._free.pop().close()

    async def _call(self, number: int) -> None:
        began_s = trio.current_time()
        problem = "no answer"
        with trio.move_on_after(CALL_TIMEOUT_S):
            problem = await self.exchange(number)
        self.recorder.record(trio.current_time() - began_s)
        if problem:
            self.errors[problem] += 1

    async def exchange(self, number: int) -> str:
        """One call; returns what was wrong with it."""
        connection = self._free.pop() if self._free else Connection(self._origin)
        try:
            answer = await connection.exchange(self._requests[number % len(self._requests)])
        except WireError as broken:
            return type(broken).__name__
        finally:
            self._free.append(connection)
        return "" if answer.status < 300 else str(answer.status)


class _Commands(_Lane):
    """Commands, each measured until it has arrived at the stream of its device."""

    def __init__(self, tenant: Tenant, devices: Sequence[str], rate: float) -> None:
        super().__init__("command", tenant, (), rate)
        self._tenant = tenant
        self._devices = devices
        self._sent = 0
        self._arrived: dict[int, trio.Event] = {}

    async def listen(self, device: str, task_status: trio.TaskStatus[None]) -> None:
        """Read the stream of a device, and open it again when it breaks off."""
        session, opened = self._tenant.session, False
        while True:
            try:
                async with open_events(session.url, f"{device}/commandStream", session.token) as events:
                    if not opened:
                        opened = True
                        task_status.started()
                    async for event in events:
                        if event.event == "deviceCommand":
                            self._take(json.loads(event.data))
            except (ApiError, WireError) as broken:
                self.errors[f"stream: {getattr(broken, 'status', type(broken).__name__)}"] += 1
            await trio.sleep(0.1)

    def _take(self, command: Json) -> None:
        if (event := self._arrived.pop(command["payload"]["sequence"], None)) is not None:
            event.set()

    async def exchange(self, number: int) -> str:
        self._sent += 1
        event = self._arrived[self._sent] = trio.Event()
        body = {"name": COMMAND, "payload": {"sequence": self._sent}}
        self._requests = (
            self._tenant.request("POST", f"{self._devices[number % len(self._devices)]}/command", body),
        )
        problem = await super().exchange(0)
        if not problem:
            await event.wait()
        return problem


class QuietTenant:
    """Sends the calls of all kinds, and measures them."""

    def __init__(self, lanes: Sequence[_Lane]) -> None:
        self._lanes = lanes

    @classmethod
    async def prepare(cls, tenant: Tenant, nursery: trio.Nursery) -> QuietTenant:
        """Create what is asked for. Streams of commands are read in the nursery."""
        application = tenant.applications[0]
        devices = [await tenant.device(application, f"quiet {number}") for number in range(DEVICES)]
        table = await tenant.table(application, ROWS)
        file = await tenant.file(application, bytes(FILE_BYTES))
        workflows = [await tenant.webhook(application, ADD, REPLY) for _ in range(WEBHOOKS)]
        scripts = [await tenant.webhook(application, SCRIPT, REPLY) for _ in range(WEBHOOKS)]
        state = {"data": {"temperature": 21.5}}
        account = tenant.account._asdict()
        commands = _Commands(tenant, devices, CALLS_A_SECOND)
        lanes = [
            _Lane(
                "state",
                tenant,
                [tenant.request("POST", f"{at}/state", state) for at in devices],
                CALLS_A_SECOND,
            ),
            _Lane(
                "read",
                tenant,
                [tenant.request("GET", f"{at}/compositeState") for at in devices],
                CALLS_A_SECOND,
            ),
            _Lane("query", tenant, _queries(tenant, table, devices), CALLS_A_SECOND),
            _Lane("workflow", tenant, workflows, CALLS_A_SECOND),
            _Lane("script", tenant, scripts, CALLS_A_SECOND),
            _Lane("file", tenant, [tenant.request("GET", file, anonymous=True)], CALLS_A_SECOND),
            commands,
            _Lane(
                "login",
                tenant,
                [tenant.request("POST", "/auth/user", account, anonymous=True)],
                LOGINS_A_SECOND,
            ),
        ]
        for device in devices:
            await nursery.start(commands.listen, device)
        return cls(lanes)

    async def measure(self, period_s: float) -> dict[str, Measured]:
        """Send the calls of a period; the figures of each kind."""
        lanes = self._lanes
        async with trio.open_nursery() as nursery:
            for number, lane in enumerate(lanes):
                nursery.start_soon(lane.send, period_s, number / len(lanes) / lane.rate)
        return {lane.name: lane.measured() for lane in lanes}

    def close(self) -> None:
        """Close the connections."""
        for lane in self._lanes:
            lane.close()


def _queries(tenant: Tenant, table: str, devices: Sequence[str]) -> list[bytes]:
    """A query of a table that looks at all rows, and a time series."""
    application = table.partition("/data-tables/")[0]
    series = {
        "duration": DAY_MS,
        "resolution": DAY_MS // 24,
        "aggregation": "MEAN",
        "attributes": ["temperature"],
        "deviceIds": [at.rpartition("/")[2] for at in devices],
    }
    return [
        tenant.request("POST", f"{table}/rows/query", {"a": {"$contains": "row 1"}}),
        tenant.request("POST", f"{application}/data/time-series-query", series),
    ]
