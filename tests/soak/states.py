"""Devices that report over REST, the link and MQTT, and whose old states are removed.

Owns the ledger of their states. Does not own what follows from a state (`flows.py`).
"""

from __future__ import annotations

import json
import time
from collections import deque
from typing import Any, Final

import trio

from tests.e2e.mqtt_client import MqttClient
from tests.soak.house import House, Part
from trunkline.bench.history import to_ms
from trunkline.bench.link_client import LinkClient
from trunkline.bench.link_queue import FrameQueue
from trunkline.http.mqtt import packets

KEPT_MAX: Final = 400
"""States in a ledger; then those that are older than the newest `KEPT_MIN` are removed on the server as well."""
KEPT_MIN: Final = 100
AT_ONCE_MAX: Final = 5
STEPS_OF_A_CONNECTION: Final = 60

State = tuple[int, int]
"""Its time and its value."""


class Reports(Part):
    """A device that reports. The time of each state is later than that of the one before."""

    name = "rest"

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self.kept: deque[State] = deque()
        self.device_path = ""
        self._last_ms = 0
        self._number = 0

    async def prepare(self) -> None:
        self.device_path = await self.device(self.name)

    async def step(self) -> None:
        states = self.fresh(self.random.choice((1, 1, 1, AT_ONCE_MAX)))
        await self.send(states)
        self.kept.extend(states)
        if len(self.kept) > KEPT_MAX:
            await self._trim()

    def fresh(self, count: int) -> list[State]:
        """States that were not sent yet."""
        states = []
        for _ in range(count):
            self._last_ms = max(self._last_ms + 1, time.time_ns() // 1_000_000)
            self._number += 1
            states.append((self._last_ms, self._number))
        return states

    async def send(self, states: list[State]) -> None:
        """Send states, and wait until they are acknowledged."""
        body: Any = [{"time": time_ms, "data": {"n": number}} for time_ms, number in states]
        kind = "state, REST" if len(body) == 1 else "states, REST"
        await self.calls.call(kind, "POST", f"{self.device_path}/state", body if len(body) > 1 else body[0])

    async def look(self) -> int:
        query = {"start": 2, "limit": 1000, "sortDirection": "asc"}
        page = await self.calls.call("history read", "GET", f"{self.device_path}/state", query=query)
        found = [(to_ms(each["time"]), each["data"]["n"]) for each in page]
        assert found == list(self.kept), _difference(found, list(self.kept))
        newest = await self.calls.call("composite state read", "GET", f"{self.device_path}/compositeState")
        if self.kept:
            assert newest["n"]["value"] == self.kept[-1][1], (newest, self.kept[-1])
        return len(found)

    async def _trim(self) -> None:
        await self.look()
        while len(self.kept) > KEPT_MIN:
            last_ms, _ = self.kept.popleft()
        queued = await self.calls.call(
            "removal of states", "DELETE", f"{self.device_path}/data", query={"start": 1, "end": last_ms}
        )
        await self.calls.job(self.path, queued)
        await self.look()


class LinkReports(Reports):
    """One that reports over the link, which it opens again and again."""

    name = "link"

    async def prepare(self) -> None:
        await super().prepare()
        body = {
            "deviceId": self.device_path.rpartition("/")[2],
            "key": self.house.key["username"],
            "secret": self.house.key["password"].decode(),
        }
        answer = await self.calls.call("login of a device", "POST", "/auth/device", body)
        self._queue = FrameQueue()
        self._client = LinkClient(
            self.calls.server.url,
            self.device_path,
            answer["token"],
            queue=self._queue,
            on_refusal=lambda refusal: self.calls.fault(self.name, AssertionError(refusal)),
        )
        self._steps = 0
        self._open = trio.CancelScope()
        self.house.nursery.start_soon(self._run)

    async def _run(self) -> None:
        while True:
            with self._open:
                await self._client.run()
            self._open = trio.CancelScope()

    async def send(self, states: list[State]) -> None:
        self._steps += 1
        if self._steps % STEPS_OF_A_CONNECTION == 0:
            self._open.cancel()
        with self.calls.timed("frame, link"):
            if len(states) == 1:
                await self._client.send_state({"n": states[0][1]}, states[0][0])
            else:
                await self._client.send_rows(["n"], states)
            await self._client.settled()
        self.calls.acknowledged += 1


class MqttReports(Reports):
    """One that reports over MQTT with QoS 1 or 2, and connects again and again."""

    name = "mqtt"

    async def prepare(self) -> None:
        await super().prepare()
        self._client: MqttClient | None = None
        self._steps = 0

    async def send(self, states: list[State]) -> None:
        self._steps += 1
        if self._steps % STEPS_OF_A_CONNECTION == 0 and self._client is not None:
            await self._client.goodbye()
            await trio.aclose_forcefully(self._client.stream)
            self._client = None
        id = self.device_path.rpartition("/")[2]
        if self._client is None:
            stream = await trio.open_tcp_stream("127.0.0.1", self.calls.mqtt_port)
            self._client = MqttClient(stream, self.random.choice((packets.V3_1_1, packets.V5)))
            answer = await self._client.connect(id, **self.house.key)
            assert answer.code == packets.SUCCESS, answer
        qos = self.random.choice((1, 2))
        body = [{"time": time_ms, "data": {"n": number}} for time_ms, number in states]
        with self.calls.timed(f"state, MQTT QoS {qos}"):
            ack = await self._client.publish(f"losant/{id}/state", json.dumps(body).encode(), qos)
        assert ack.code < packets.UNSPECIFIED_ERROR, ack
        self.calls.acknowledged += 1

    async def look(self) -> int:
        if self._client is not None and self.house.has_ended:
            await trio.aclose_forcefully(self._client.stream)
        return await super().look()


def _difference(found: list[State], expected: list[State]) -> str:
    lost, strange = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    return f"{len(lost)} states are lost: {lost[:3]}; {len(strange)} were never sent or are removed: {strange[:3]}"
