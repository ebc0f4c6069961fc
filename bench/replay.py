"""The `replay` scenario: real measurements from CSV files through the public API, read back and compared.

Owns creating what the measurements need (application, devices, attributes) and sending them, for each device in
the order of time. It follows the server's throttle by its headers (``pacing``), so a call carries many states.

A call without an answer is sent again: if the first one had arrived, the same times with the same values change
nothing. A call that is refused with 400 stores nothing, so it is split in halves until the refused row is
alone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.framing import Response
from trunkline.bench.history import to_iso
from trunkline.bench.measurements import DeviceSeries, Measurements
from trunkline.bench.replay_audit import ReplayCounts, ReplayDevice, compare
from trunkline.bench.session import Json, Session, device_path, record_id, refusal

STATES_PER_CALL = 500
"""States: the array of one call; 30 calls are 15,000 states in a throttle window."""

STATES_PER_CALL_MAX = 10_000
"""States: more would only be split by the bound on a body."""

CALL_BYTES_MAX = 512 * 1024
"""Bytes: the body of one call, half of the API's maximum."""

DEVICES_MAX = 10_000
"""Devices: each has a task of its own while a replay runs."""

BREAK_PAUSE_S = 0.5
"""Seconds: before a call is repeated on a new connection."""

Progress = Callable[[ReplayCounts], None]


class Replay:
    """One replay: call ``prepare``, ``send`` and ``compare``; ``counts`` holds the results."""

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
        self.counts = ReplayCounts()
        self.application_id = ""
        self.states_per_call = states_per_call
        self._devices = [ReplayDevice(series) for series in measurements.series.values()]

    @property
    def devices_created(self) -> int:
        """Devices that did not exist before."""
        return sum(device.created for device in self._devices)

    async def prepare(self, *, application_id: str | None, name: str) -> None:
        """Create or find the application and its devices by name, and declare missing attributes."""
        existing: dict[str, Json] = {}
        if application_id is None:
            self.application_id = await self.session.create_application(name)
        else:
            self.application_id = application_id
            existing = await self.session.find_devices(application_id)
        new = [device for device in self._devices if device.series.name not in existing]
        wanted = [
            {"name": device.series.name, "attributes": _declared(device.series.attributes)} for device in new
        ]
        ids = await self.session.create_devices(self.application_id, wanted)
        for device, device_id in zip(new, ids, strict=True):
            device.device_id, device.created = device_id, True
        for device in self._devices:
            if not device.created:
                await self._adopt(device, existing[device.series.name])
            device.path = device_path(self.application_id, device.device_id, "/state")

    async def _adopt(self, device: ReplayDevice, record: Json) -> None:
        """Use an existing device; declare the attributes that it lacks."""
        device.device_id = record_id(record)
        present: list[Json] = record.get("attributes") or []
        kinds = {one["name"]: one["dataType"] for one in present}
        added: dict[str, str] = {}
        for name, kind in device.series.attributes.items():
            if name not in kinds:
                added[name] = kind
            elif kinds[name] != kind:
                raise BenchError(
                    f"Device {device.series.name!r} has {name!r} as {kinds[name]}; the file has it as {kind}."
                )
        if added:
            path = device_path(self.application_id, device.device_id)
            await self.session.call("PATCH", path, {"attributes": [*present, *_declared(added)]})

    async def send(self, *, speed: float | None = None, on_progress: Progress | None = None) -> None:
        """Send every row; with ``speed`` at that multiple of the original pace, else as fast as the throttle allows."""
        if speed is not None and speed <= 0:
            raise BenchError("--speed must be above 0.")
        started_s = trio.current_time()
        first_ms = min(device.series.times[0] for device in self._devices)

        def due_s(time_ms: int) -> float:
            return started_s if speed is None else started_s + (time_ms - first_ms) / 1000 / speed

        async with trio.open_nursery() as nursery:
            for device in self._devices:
                nursery.start_soon(self._send_device, device, due_s, on_progress)
        self.counts.elapsed_s = trio.current_time() - started_s

    async def _send_device(
        self, device: ReplayDevice, due_s: Callable[[int], float], on_progress: Progress | None
    ) -> None:
        times = device.series.times
        start = 0
        while start < len(times):
            await trio.sleep_until(max(due_s(times[start]), device.pacer.next_s))
            now_s = trio.current_time()
            end = start + 1
            while end < len(times) and end - start < self.states_per_call and due_s(times[end]) <= now_s:
                end += 1
            start = await self._send_rows(device, start, end)
            if on_progress is not None:
                on_progress(self.counts)

    async def _send_rows(self, device: ReplayDevice, start: int, end: int) -> int:
        """Send rows from ``start`` to ``end``, or as many as fit into one body; return the next row to send."""
        body, end = _encode(device.series, start, end)
        response = await self._post(device, body)
        counts = self.counts
        if 200 <= response.status < 300:
            device.acknowledged[start:end] = b"\1" * (end - start)
            counts.sent += end - start
            counts.acknowledged += end - start
        elif response.status not in (400, 413):
            raise refusal(response)
        elif end - start == 1:
            error = refusal(response)
            counts.sent += 1
            counts.refused += 1
            counts.reasons[f"{error.status} {error.type}"] += 1
            where = f"{device.series.name} at {to_iso(device.series.times[start])}"
            counts.note(f"refused: {where}: {error.message}")
        else:
            middle = (start + end) // 2
            await self._send_rows(device, start, middle)
            await self._send_rows(device, middle, end)
        return end

    async def _post(self, device: ReplayDevice, body: bytes) -> Response:
        """Make one call; repeat it without an answer or after 429 or 503, for up to the session's ``patience_s``."""
        give_up_s = trio.current_time() + self.session.patience_s
        while True:
            await trio.sleep_until(device.pacer.next_s)
            self.counts.calls += 1
            try:
                async with self.session.connection() as connection:
                    response = await connection.request("POST", device.path, body)
            except WireError:
                if trio.current_time() > give_up_s:
                    raise
                self.counts.repeated_calls += 1
                await trio.sleep(BREAK_PAUSE_S)
                continue
            device.pacer.learn(response, trio.current_time())
            if response.status not in (429, 503):
                return response
            self.counts.throttled_calls += 1
            if device.pacer.next_s > give_up_s:
                raise refusal(response)

    async def compare(self, *, on_progress: Progress | None = None) -> None:
        """Read the history of every device, a few devices at a time, and compare it value by value."""
        waiting = iter(self._devices)

        async def work() -> None:
            for device in waiting:
                await compare(self.session, self.application_id, device, self.counts)
                if on_progress is not None:
                    on_progress(self.counts)

        async with trio.open_nursery() as nursery:
            for _ in range(min(self.session.connections_max, len(self._devices))):
                nursery.start_soon(work)


def _declared(attributes: dict[str, str]) -> list[Json]:
    return [{"name": name, "dataType": kind} for name, kind in attributes.items()]


def _encode(series: DeviceSeries, start: int, end: int) -> tuple[bytes, int]:
    """Return the body for the rows from ``start`` that fit into it, and the first row that does not."""
    parts: list[bytes] = []
    size = 2
    for index in range(start, end):
        # Times as text: the API reads small numbers (milliseconds before 1973) as seconds.
        part = msgspec.json.encode({"time": to_iso(series.times[index]), "data": series.rows[index]})
        size += len(part) + 1
        if parts and size > CALL_BYTES_MAX:
            return b"[" + b",".join(parts) + b"]", index
        parts.append(part)
    return b"[" + b",".join(parts) + b"]", end
