"""The `replay` scenario: real measurements from CSV files through the public API, read back and compared.

Owns making what the measurements need (application, devices, attributes) and sending them, each device in
the order of its times. Keeps to the server's throttle by its own headers (``pacing``), which is why a call
carries many states.

A call whose answer never came is sent again: the same times with the same values change nothing if the
first one had arrived. A call that is refused with 400 stores nothing, so it is halved until the refused row
stands alone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from trunkline.bench.comparison import Account, Lane, compare
from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.framing import Response
from trunkline.bench.history import to_iso
from trunkline.bench.measurements import Measurements, Series
from trunkline.bench.session import Json, Session, device_path, record_id, refusal

STATES_PER_CALL = 500
"""States: one call's array; 30 calls of it are 15,000 states a throttle window."""

STATES_PER_CALL_MAX = 10_000
"""States: more would only be cut by the bound on a body."""

CALL_BYTES_MAX = 512 * 1024
"""Bytes: one call's body, half of the largest that the API takes."""

DEVICES_MAX = 10_000
"""Devices: each has a task of its own while a replay runs."""

BREAK_PAUSE_S = 0.5
"""Seconds: before a call is repeated on a new connection."""

Progress = Callable[[Account], None]


class Replay:
    """One replay: ``prepare``, ``send``, ``compare``; the account says what happened."""

    def __init__(
        self, session: Session, measurements: Measurements, *, states_per_call: int = STATES_PER_CALL
    ) -> None:
        devices = len(measurements.series)
        if not 1 <= states_per_call <= STATES_PER_CALL_MAX:
            raise BenchError(f"A call takes between 1 and {STATES_PER_CALL_MAX} states.")
        if devices == 0:
            raise BenchError("No row of the measurements can be used.")
        if devices > DEVICES_MAX:
            raise BenchError(f"A replay takes at most {DEVICES_MAX} devices; these are {devices}.")
        self.session = session
        self.account = Account()
        self.application_id = ""
        self.states_per_call = states_per_call
        self._lanes = [Lane(series) for series in measurements.series.values()]

    @property
    def devices_created(self) -> int:
        """Devices that did not exist before."""
        return sum(lane.created for lane in self._lanes)

    async def prepare(self, *, application_id: str | None, name: str) -> None:
        """Make or find the application, its devices by name, and the attributes that are missing."""
        existing: dict[str, Json] = {}
        if application_id is None:
            self.application_id = await self.session.create_application(name)
        else:
            self.application_id = application_id
            existing = await self.session.find_devices(application_id)
        new = [lane for lane in self._lanes if lane.series.name not in existing]
        wanted = [{"name": lane.series.name, "attributes": _declared(lane.series.attributes)} for lane in new]
        ids = await self.session.create_devices(self.application_id, wanted)
        for lane, device_id in zip(new, ids, strict=True):
            lane.device_id, lane.created = device_id, True
        for lane in self._lanes:
            if not lane.created:
                await self._adopt(lane, existing[lane.series.name])
            lane.path = device_path(self.application_id, lane.device_id, "/state")

    async def _adopt(self, lane: Lane, device: Json) -> None:
        """Use a device that exists; declare what it lacks and keep what it has."""
        lane.device_id = record_id(device)
        present: list[Json] = device.get("attributes") or []
        kinds = {one["name"]: one["dataType"] for one in present}
        added: dict[str, str] = {}
        for name, kind in lane.series.attributes.items():
            if name not in kinds:
                added[name] = kind
            elif kinds[name] != kind:
                raise BenchError(
                    f"Device {lane.series.name!r} has {name!r} as {kinds[name]}; the file has it as {kind}."
                )
        if added:
            path = device_path(self.application_id, lane.device_id)
            await self.session.call("PATCH", path, {"attributes": [*present, *_declared(added)]})

    async def send(self, *, speed: float | None = None, on_progress: Progress | None = None) -> None:
        """Send every row; with ``speed`` at that multiple of the original pace, else as fast as allowed."""
        if speed is not None and speed <= 0:
            raise BenchError("--speed must be above 0.")
        started_s = trio.current_time()
        first_ms = min(lane.series.times[0] for lane in self._lanes)

        def due_s(time_ms: int) -> float:
            return started_s if speed is None else started_s + (time_ms - first_ms) / 1000 / speed

        async with trio.open_nursery() as nursery:
            for lane in self._lanes:
                nursery.start_soon(self._send_lane, lane, due_s, on_progress)
        self.account.elapsed_s = trio.current_time() - started_s

    async def _send_lane(
        self, lane: Lane, due_s: Callable[[int], float], on_progress: Progress | None
    ) -> None:
        times = lane.series.times
        start = 0
        while start < len(times):
            await trio.sleep_until(max(due_s(times[start]), lane.pacer.next_s))
            now_s = trio.current_time()
            end = start + 1
            while end < len(times) and end - start < self.states_per_call and due_s(times[end]) <= now_s:
                end += 1
            start = await self._send_rows(lane, start, end)
            if on_progress is not None:
                on_progress(self.account)

    async def _send_rows(self, lane: Lane, start: int, end: int) -> int:
        """Send rows from ``start`` to ``end``, or as many as one body holds; the next row to send."""
        body, end = _encode(lane.series, start, end)
        response = await self._post(lane, body)
        account = self.account
        if 200 <= response.status < 300:
            lane.acknowledged[start:end] = b"\1" * (end - start)
            account.sent += end - start
            account.acknowledged += end - start
        elif response.status not in (400, 413):
            raise refusal(response)
        elif end - start == 1:
            error = refusal(response)
            account.sent += 1
            account.refused += 1
            account.reasons[f"{error.status} {error.type}"] += 1
            where = f"{lane.series.name} at {to_iso(lane.series.times[start])}"
            account.note(f"refused: {where}: {error.message}")
        else:
            middle = (start + end) // 2
            await self._send_rows(lane, start, middle)
            await self._send_rows(lane, middle, end)
        return end

    async def _post(self, lane: Lane, body: bytes) -> Response:
        """One call, repeated until it is answered and not refused for now, within the session's patience."""
        give_up_s = trio.current_time() + self.session.patience_s
        while True:
            await trio.sleep_until(lane.pacer.next_s)
            self.account.calls += 1
            try:
                async with self.session.connection() as connection:
                    response = await connection.request("POST", lane.path, body)
            except WireError:
                if trio.current_time() > give_up_s:
                    raise
                self.account.repeated_calls += 1
                await trio.sleep(BREAK_PAUSE_S)
                continue
            lane.pacer.learn(response, trio.current_time())
            if response.status not in (429, 503):
                return response
            self.account.throttled_calls += 1
            if lane.pacer.next_s > give_up_s:
                raise refusal(response)

    async def compare(self, *, on_progress: Progress | None = None) -> None:
        """Read every device's history back, a few devices at a time, and compare it value by value."""
        waiting = iter(self._lanes)

        async def work() -> None:
            for lane in waiting:
                await compare(self.session, self.application_id, lane, self.account)
                if on_progress is not None:
                    on_progress(self.account)

        async with trio.open_nursery() as nursery:
            for _ in range(min(self.session.connections_max, len(self._lanes))):
                nursery.start_soon(work)


def _declared(attributes: dict[str, str]) -> list[Json]:
    return [{"name": name, "dataType": kind} for name, kind in attributes.items()]


def _encode(series: Series, start: int, end: int) -> tuple[bytes, int]:
    """The body for rows from ``start``, as many as fit into it, and the first row that is not in it."""
    parts: list[bytes] = []
    size = 2
    for index in range(start, end):
        # As text: the API takes numbers of the years before 1973 as seconds.
        part = msgspec.json.encode({"time": to_iso(series.times[index]), "data": series.rows[index]})
        size += len(part) + 1
        if parts and size > CALL_BYTES_MAX:
            return b"[" + b",".join(parts) + b"]", index
        parts.append(part)
    return b"[" + b",".join(parts) + b"]", end
