"""A small in-memory server for testing the load tools, with faults that can be switched on.

It implements only the calls that the tools make. The faults are losing or changing what it acknowledged and
storing what it refused, so that a test can show that the tools detect them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from tests.patience import PATIENCE_S

Answer = tuple[int, Any, dict[str, str]]
EMAIL, PASSWORD = "bench@example.org", "correct horse"


def iso(time_ms: int) -> str:
    moment = datetime.fromtimestamp(time_ms // 1000, UTC).replace(microsecond=time_ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(time: str | int) -> int:
    """A state's time by the API's rule: text is ISO, small numbers are seconds."""
    if isinstance(time, str):
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    return time * 1000 if time < 100_000_000_000 else time


MEASURED_BY_A_CLOCK = (
    "reactor",
    "load",
    "stage",
    "sampler",
    "stream_connection",
    "scenarios.commands",
    "scenarios.storm",
)


@pytest.fixture
def work_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time pass for a load as this process, the server in it too, gets on with its work.

    On a busy machine a load of a tenth of a second then takes longer, but makes no fewer calls. Where nothing
    is left to do, a tenth of the real time counts, so that each load ends.
    """

    def clock() -> float:
        return time.process_time() + time.monotonic() / 10

    for name in MEASURED_BY_A_CLOCK:
        monkeypatch.setattr(importlib.import_module(f"trunkline.bench.{name}"), "clock", clock)


class FakeApi:
    """Applications, devices and states by the rules of the API, with hooks for faults."""

    def __init__(self) -> None:
        self.url = ""
        self.email, self.password = EMAIL, PASSWORD
        self.applications: dict[str, str] = {}
        self.devices: dict[str, dict[str, Any]] = {}
        self.states: dict[str, dict[int, dict[str, Any]]] = {}
        self.latest: dict[str, list[dict[str, Any]]] = {}
        self.calls: list[tuple[str, str]] = []
        self.published: list[dict[str, Any]] = []
        self.state_posts = 0
        self.start_is_inclusive = True
        self.answer_state: Callable[[str, list[Any], int], Answer | None] = lambda device, states, number: (
            None
        )
        self.keep: Callable[[str, int, dict[str, Any]], dict[str, Any] | None] = lambda device, time, data: (
            data
        )
        self.commands: dict[str, list[str]] = {}
        self.streams: list[tuple[str, str]] = []
        self.arrived = trio.Condition()
        self.cut: Callable[[str, str, int], bool] = lambda method, path, number: False

    async def serve(self, stream: trio.SocketStream) -> None:
        with contextlib.suppress(trio.BrokenResourceError):  # A tool may leave at any moment.
            await self._serve(stream)

    async def _serve(self, stream: trio.SocketStream) -> None:
        buffer = bytearray()
        async with stream:
            while True:
                while (end := buffer.find(b"\r\n\r\n")) < 0:
                    if not (data := await stream.receive_some(65_536)):
                        return
                    buffer += data
                head = bytes(buffer[:end]).decode()
                found = re.search(r"(?i)\r\ncontent-length: (\d+)", head)
                size = end + 4 + int(found[1] if found else 0)
                while len(buffer) < size:
                    buffer += await stream.receive_some(65_536)
                body = bytes(buffer[end + 4 : size])
                del buffer[:size]
                method, target, _ = head.split("\r\n")[0].split(" ")
                self.calls.append((method, target))
                if "/commandStream" in target and target.split("/")[4] in self.devices:
                    await self.stream_commands(stream, target.split("/")[4], head)
                    return
                status, answer, headers = self.handle(method, target, head, body)
                async with self.arrived:
                    self.arrived.notify_all()
                if self.cut(method, target, len(self.calls)):
                    return
                raw = json.dumps(answer).encode()
                fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                reply = f"HTTP/1.1 {status} X\r\ncontent-length: {len(raw)}\r\n{fields}\r\n".encode() + raw
                await stream.send_all(reply)

    async def stream_commands(self, stream: trio.SocketStream, device: str, head: str) -> None:
        """Send the waiting commands, one a connection, and then close: the tool has to come again."""
        last = re.search(r"(?i)\r\nlast-event-id: (\S+)", head)
        self.streams.append((device, last[1] if last else ""))
        waiting = self.commands.get(device, [])
        text = f"id: {len(waiting)}\nevent: deviceCommand\ndata: {waiting.pop(0)}\n\n" if waiting else ""
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n: hello\n\n" + text.encode())
        if not waiting:
            await trio.sleep_forever()

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until a call has made something true."""
        with trio.fail_after(PATIENCE_S):
            async with self.arrived:
                while not seen():
                    await self.arrived.wait()

    def handle(self, method: str, target: str, head: str, body: bytes) -> Answer:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = parts.path.strip("/").split("/")
        data: Any = json.loads(body) if body else None
        if (method, parts.path) == ("POST", "/auth/user"):
            if data == {"email": self.email, "password": self.password}:
                return 200, {"token": "t0ken", "userId": "0" * 24}, {}
            return 401, {"type": "Unauthorized", "message": "Wrong e-mail or password."}, {}
        if "authorization: Bearer t0ken" not in head:
            return 401, {"type": "Unauthorized", "message": "No token."}, {}
        match (method, *path):
            case ("POST", "applications"):
                return 201, self.add(self.applications, data["name"]), {}
            case ("GET", "applications"):
                return self.page([{"id": i, "name": n} for i, n in self.applications.items()], query)
            case ("POST", "applications", app, "devices") if app in self.applications:
                made = self.add({}, data["name"])
                self.devices[made["id"]] = {**data, "id": made["id"]}
                self.states[made["id"]] = {}
                self.latest[made["id"]] = []
                return 201, self.devices[made["id"]], {}
            case ("GET", "applications", app, "devices") if app in self.applications:
                return self.page(list(self.devices.values()), query)
            case ("PATCH", "applications", _, "devices", device) if device in self.devices:
                self.devices[device].update(data)
                return 200, self.devices[device], {}
            case ("POST", "applications", _, "devices", device, "state") if device in self.devices:
                return self.post_states(device, data if isinstance(data, list) else [data])
            case ("POST", "applications", app, "mqttPublishMessage") if app in self.applications:
                self.published.append(data)
                return 200, {"success": True}, {}
            case ("GET", "applications", _, "devices", device, "state") if device in self.devices:
                return self.get_states(device, query)
        return 404, {"type": "NotFound", "message": f"{parts.path} was not found."}, {}

    @staticmethod
    def refusal(status: int, type_: str, message: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return status, {"type": type_, "message": message}, named

    def add(self, records: dict[str, str], name: str) -> dict[str, str]:
        made = f"{len(self.applications) + len(self.devices) + 1:024x}"
        records[made] = name
        return {"id": made, "name": name}

    def page(self, records: list[Any], query: dict[str, str]) -> Answer:
        size = int(query["perPage"])
        start = int(query["page"]) * size
        items = records[start : start + size]
        return 200, {"items": items, "count": len(items), "totalCount": len(records)}, {}

    def post_states(self, device: str, states: list[Any]) -> Answer:
        self.state_posts += 1
        answer = self.answer_state(device, states, self.state_posts)
        if answer is None or answer[0] == 500:
            for state in states:
                self.latest[device].append(state["data"])
                if "time" not in state:
                    continue
                time_ms = moment(state["time"])
                if (kept := self.keep(device, time_ms, state["data"])) is not None:
                    self.states[device].setdefault(time_ms, {}).update(kept)
        return answer or (200, {"success": True}, {})

    def get_states(self, device: str, query: dict[str, str]) -> Answer:
        start, end, limit = int(query["start"]), int(query["end"]), int(query["limit"])
        first = start if self.start_is_inclusive else start + 1
        times = sorted(time for time in self.states[device] if first <= time <= end)
        if query["sortDirection"] == "desc":
            times.reverse()
        return 200, [{"time": iso(time), "data": self.states[device][time]} for time in times[:limit]], {}


@pytest.fixture
async def fake_api(nursery: trio.Nursery) -> AsyncIterator[FakeApi]:
    """The server on a free port, until the test ends."""
    api = FakeApi()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    api.url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
    nursery.start_soon(trio.serve_listeners, api.serve, [listener])
    yield api
    nursery.cancel_scope.cancel()
