"""Trunkline itself, with either engine and without hot rows, started by its command like the other peers."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

import msgspec

from tests.bench.peers.mosquitto import MqttProtocol, publish_state, subscribe_offline
from tests.bench.peers.peer import MESSAGE, Kept, Peer, Posts, Started
from tests.bench.peers.series import MINUTE_MS, Means, SeriesPoints, SeriesSource
from trunkline.bench.fleet import Fleet
from trunkline.bench.flushed import flush
from trunkline.bench.history import to_ms
from trunkline.bench.ledger import Audit
from trunkline.bench.programs import Workspace, free_port
from trunkline.bench.progress import ProgressBar
from trunkline.bench.session import Session, device_path
from trunkline.bench.transport import Origin

_EMAIL = "bench@localhost"
_MQTT_LIMITS = """
mqtt_client = "off"
mqtt_topic = "off"
mqtt_connect = "off"
mqtt_queue_messages_max = 1000000000
mqtt_queue_bytes_max = 1000000000000
"""
_MAIN = "from trunkline.http.cli.main import main; main()"


class Trunkline(Peer):
    """The server of this project, with its throttles lifted."""

    name = "Trunkline"
    about = "our own engine, hot rows before Quart"
    settings: ClassVar[Mapping[str, str]] = {}
    """Settings that differ from the defaults, as environment variables."""

    async def start(self, workspace: Workspace, *options: str) -> Session:
        """Start the server, and log in."""
        password, port = f"Bench-{secrets.token_hex(12)}", free_port()
        inherited = {name: text for name, text in os.environ.items() if not name.startswith("TRUNKLINE_")}
        workspace.start(
            [
                *(sys.executable, "-c", _MAIN, "serve", "--data", str(workspace.directory / "store")),
                *("--port", str(port), *options),
            ],
            env={
                **inherited,
                "TRUNKLINE_ADMIN_EMAIL": _EMAIL,
                "TRUNKLINE_ADMIN_PASSWORD": password,
                **self.settings,
            },
        )
        await workspace.listens(port)
        scheme = "https" if "TRUNKLINE_CERTFILE" in self.settings else "http"
        session = Session(f"{scheme}://127.0.0.1:{port}")
        await session.login(_EMAIL, password)
        return session

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        session = await self.start(workspace, "--limits", "off")
        fleet = await Fleet.create(session, bar, "peers", devices)

        async def kept() -> Kept:
            found = Audit()
            await fleet.audit(session, found, bar)
            return Kept(found.acknowledged, found.acknowledged - found.missing - found.different)

        try:
            yield Started(
                version=self.about,
                durable=True,
                durability="on disk before the answer (one synced commit for all that waits)",
                keeps="each state, by device and time, checked against the device's attributes; its newest values",
                origin=session.origin,
                callers=lambda tally, count: fleet.state_posts(tally, rehearsal=False, per_call=count),
                kept=kept,
                finish=partial(flush, workspace.directory / "store"),
                series=TrunklineSeries(session, fleet.application_id),
            )
        finally:
            session.close()


class TrunklineStock(Trunkline):
    """The same with Hypercorn's stock engine."""

    name = "Trunkline, stock engine"
    about = "Hypercorn as it is, hot rows before Quart"
    settings: ClassVar[Mapping[str, str]] = {"TRUNKLINE_ENGINE": "stock"}


class TrunklineQuart(Trunkline):
    """Hypercorn's stock engine, and every call through Quart: the cost of the application without the fast path."""

    name = "Trunkline, stock engine through Quart"
    about = "Hypercorn as it is, every call through Quart"
    settings: ClassVar[Mapping[str, str]] = {"TRUNKLINE_ENGINE": "stock", "TRUNKLINE_HOT_ROWS": "off"}


class TrunklineMqtt(Trunkline):
    """Publishes of QoS 1 for an offline subscriber: the work that Mosquitto is given."""

    name = "Trunkline, MQTT QoS 1"
    speaks_http = False

    @asynccontextmanager
    async def run(
        self, work: Path, workspace: Workspace, devices: int, bar: ProgressBar
    ) -> AsyncIterator[Started]:
        limits, port = workspace.directory / "limits.toml", free_port()
        limits.write_text(_MQTT_LIMITS, encoding="utf-8")
        session = await self.start(workspace, "--limits", str(limits), "--mqtt-port", str(port))
        try:
            application = (
                f"/applications/{await session.create_application('peers', 'For tests.bench.peers.')}"
            )
            key = await session.call("POST", f"{application}/keys", {})
            login = key["key"], key["secret"]
            await subscribe_offline(port, login)
            posts = Posts(devices, publish_state)

            async def kept() -> Kept:
                query = {"state": "sleeping"}
                (sleeping,) = (await session.call("GET", f"{application}/mqttClients", query=query))["items"]
                return posts.kept_calls(sleeping["queued"])

            yield Started(
                version=self.about,
                durable=True,
                durability="on disk before the answer (one synced commit for all that waits)",
                keeps=MESSAGE,
                origin=Origin("127.0.0.1", port, tls=False, prefix=""),
                callers=posts.callers,
                kept=kept,
                protocol=partial(MqttProtocol, login),
                finish=partial(flush, workspace.directory / "store"),
            )
        finally:
            session.close()


class TrunklineSeries(SeriesSource):
    """The time series query of an application, over devices of its own."""

    def __init__(self, session: Session, application_id: str) -> None:
        self._session = session
        self._application_id = application_id
        self._ids: list[str] = []

    async def store(self, points: SeriesPoints) -> None:
        devices = [
            {"name": f"series-{number}", "attributes": [{"name": "temperature", "dataType": "number"}]}
            for number in range(points.devices)
        ]
        self._ids = await self._session.create_devices(self._application_id, devices)
        for number, some in points.calls():
            states = [{"time": time_ms, "data": {"temperature": value}} for time_ms, value in some]
            path = device_path(self._application_id, self._ids[number], "/state")
            await self._session.call("POST", path, states)

    async def ask(self, points: SeriesPoints) -> bytes:
        body = {
            "start": points.first_ms,
            "end": points.end_ms - 1,
            "resolution": MINUTE_MS,
            "aggregation": "MEAN",
            "attributes": ["temperature"],
            "deviceIds": self._ids,
        }
        path = f"/applications/{self._application_id}/data/time-series-query"
        return (await self._session.fetch("POST", path, body)).body

    def read(self, answer: bytes) -> Means:
        devices = msgspec.json.decode(answer)["devices"]
        return {
            (self._ids.index(device_id), to_ms(point["time"])): point["data"]["temperature"]
            for device_id, device in devices.items()
            for point in device["points"]
        }
