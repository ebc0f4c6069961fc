"""Idle MQTT clients: the memory of a server for each connection of a device with a session on which nothing happens."""

from __future__ import annotations

from functools import partial

from trunkline.bench.errors import BenchError, WireError
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.load import Tally
from trunkline.bench.mqtt_connection import MqttConnection
from trunkline.bench.mqtt_load import MqttLoad
from trunkline.bench.reactor import clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run
from trunkline.bench.scenarios.link_connections import report_states
from trunkline.bench.scenarios.mqtt import MqttScenario
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.stage import ACCEPTED_AFTER_S, Plan, load_reactor
from trunkline.bench.transport import Origin

SESSION_S = 3_600
"""How long a session outlives its connection."""


class MqttIdleScenario(MqttScenario):
    """``devices`` connect and stay, after each has reported a state: they are in memory before their connections."""

    name = "mqtt idle"
    title = "Idle MQTT clients"
    staged = False

    def __init__(self, *, devices: int, mqtt_port: int) -> None:
        super().__init__(devices=devices, qos=[], rest=False, mqtt_port=mqtt_port)

    def connections(self, plan: Plan) -> int:
        return self.devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def perform(self, run: Run) -> None:
        if run.monitor is None:
            raise BenchError("The memory of a server can be read on its machine only.")
        await report_states(run, self.fleet)
        run.bar.begin("idle clients")
        stage = await run.in_thread(partial(self._connect, run.monitor))
        run.add(stage)
        run.bar.end(f"{stage.elapsed_s:.2f} s")

    def _connect(self, monitor: ServerMonitor) -> Stage:
        before, began_s, until_open = monitor.usage(), clock(), LatencyRecorder()
        with load_reactor() as reactor:
            load = MqttLoad(reactor, Tally("nothing", "states"))
            load.others = [
                _Idle(load, self.origin, self.key.connect(each, session_s=SESSION_S), until_open)
                for each in self.fleet.device_ids
            ]
            try:
                load.open()
                elapsed_s, after = clock() - began_s, monitor.usage()
                reactor.run(clock() + ACCEPTED_AFTER_S)
                value = (monitor.usage().private_bytes - before.private_bytes) / self.devices
            finally:
                load.close()
        return Stage(
            name="idle clients",
            elapsed_s=elapsed_s,
            delays=[Delay(name="until the client was connected", latency=Latency.of(until_open))],
            figures=[Figure(name="server memory a client", value=value, unit="bytes")],
            server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s,
        )


class _Idle(MqttConnection):
    """A client that only connects."""

    __slots__ = ("_began_s", "_load", "_until_open")

    def __init__(self, load: MqttLoad, origin: Origin, connect: bytes, until_open: LatencyRecorder) -> None:
        super().__init__(load.reactor, origin, connect)
        self._load = load
        self._until_open = until_open
        self._began_s = 0.0

    def open(self) -> None:
        self._began_s = clock()
        super().open()

    def connected(self) -> None:
        self._until_open.record(clock() - self._began_s)
        self._load.ready()

    def broken(self, problem: WireError) -> None:
        self._load.broken(problem)
