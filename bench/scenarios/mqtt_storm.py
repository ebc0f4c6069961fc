"""A storm of MQTT clients: all devices connect at once, each with a state that has to be acknowledged.

Twice: for the first time, and again after all connections were cut. All times are measured from the moment at which the
clients begin to connect, so the longest one is the duration of the storm.
"""

from __future__ import annotations

import time
from functools import partial

from trunkline.bench.errors import TimedOut
from trunkline.bench.latency import LatencyRecorder
from trunkline.bench.ledger import StateLedger
from trunkline.bench.load import Tally
from trunkline.bench.mqtt_load import MqttLoad
from trunkline.bench.mqtt_states import Device
from trunkline.bench.reactor import Reactor, clock
from trunkline.bench.result import Delay, Figure, Latency, Stage
from trunkline.bench.run import Run
from trunkline.bench.scenarios.mqtt import MqttScenario
from trunkline.bench.scenarios.storm import STORM_TIMEOUT_S
from trunkline.bench.stage import Plan, load_reactor


class MqttStormScenario(MqttScenario):
    """``devices`` connect together, are cut together, and connect again."""

    name = "mqtt storm"
    title = "Storm of MQTT clients"
    staged = False

    def __init__(self, *, devices: int, mqtt_port: int) -> None:
        super().__init__(devices=devices, qos=[1], rest=False, mqtt_port=mqtt_port)

    def connections(self, plan: Plan) -> int:
        return self.devices

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices}

    async def perform(self, run: Run) -> None:
        for name in ("first connection", "storm"):
            run.bar.begin(name)
            stage = await run.in_thread(partial(self._storm, run, name))
            run.add(stage)
            run.bar.end(f"{stage.elapsed_s:.2f} s")

    def _storm(self, run: Run, name: str) -> Stage:
        monitor = run.monitor
        before, cpu_s = monitor.usage() if monitor else None, time.thread_time()
        with load_reactor() as reactor:
            storm = _Storm(reactor)
            storm.publishers = [_StormDevice(self, storm, ledger) for ledger in self.fleet.ledgers]
            try:
                elapsed_s = storm.pass_by()
            finally:
                storm.close()
        after = monitor.usage() if monitor else None
        return Stage(
            name=name,
            elapsed_s=elapsed_s,
            delays=[
                Delay(name="until the client was connected", latency=Latency.of(storm.until_open)),
                Delay(name="until a state was stored", latency=Latency.of(storm.until_stored)),
            ],
            figures=[
                Figure(name="until all were served", value=elapsed_s, unit="s"),
                Figure(name="clients served", value=self.devices / elapsed_s, unit="a second"),
            ],
            generator_cpu=(time.thread_time() - cpu_s) / elapsed_s,
            server_cpu=(after.cpu_s - before.cpu_s) / elapsed_s if before and after else None,
        )


class _Storm(MqttLoad):
    """Clients that connect at once, and the times at which each was served."""

    def __init__(self, reactor: Reactor) -> None:
        super().__init__(reactor, Tally("messages with QoS 1", "states"))
        self.until_open = LatencyRecorder()
        self.until_stored = LatencyRecorder()
        self.began_s = 0.0

    def pass_by(self) -> float:
        """Connect all clients and wait until the state of each is stored; return the seconds that it took."""
        count = len(self.publishers)
        self.running = True
        self.began_s = clock()
        self.open(together=count)
        self.running = False
        if self.under_way:
            self.reactor.run(self.began_s + STORM_TIMEOUT_S)
        if self.tally.acknowledged < count:
            raise self.problem or TimedOut(
                f"After {STORM_TIMEOUT_S:g} s {self.tally.acknowledged:,} of {count:,} states were stored.",
                maybe_done=True,
            )
        return clock() - self.began_s


class _StormDevice(Device):
    """A device that publishes one state as soon as it is connected."""

    __slots__ = ("_reported", "_storm")

    def __init__(self, scenario: MqttStormScenario, storm: _Storm, ledger: StateLedger) -> None:
        super().__init__(storm, scenario.origin, scenario.key.connect(ledger.device_id), ledger, 1, 1)
        self._storm = storm
        self._reported = False

    def connected(self) -> None:
        storm = self._storm
        storm.until_open.record(clock() - storm.began_s)
        self.fill()
        super().connected()

    def fill(self) -> None:
        if not self._reported:
            self._reported = True
            super().fill()

    def acknowledged(self, number: int, sent_s: float) -> None:
        self._storm.until_stored.record(clock() - self._storm.began_s)
        super().acknowledged(number, sent_s)
