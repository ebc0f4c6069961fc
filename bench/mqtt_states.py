"""The MQTT clients of a load that are devices and report states."""

from __future__ import annotations

from trunkline.bench.ledger import ACKNOWLEDGED, REFUSED, StateLedger, body_of
from trunkline.bench.mqtt_load import MqttLoad, Publisher
from trunkline.bench.mqtt_packets import topic_of
from trunkline.bench.reactor import clock
from trunkline.bench.transport import Origin

UNDER_WAY_MAX = 1024
"""States over all clients: half of the writes that may wait in a server before it refuses more."""

WINDOW_MAX = 256
"""States under way of one client."""


def window_of(clients: int) -> int:
    """How many states each of so many clients keeps under way."""
    return max(1, min(WINDOW_MAX, UNDER_WAY_MAX // clients))


class Device(Publisher):
    """One device, which publishes the next states of its ledger."""

    __slots__ = ("_ledger",)

    def __init__(
        self, load: MqttLoad, origin: Origin, connect: bytes, ledger: StateLedger, qos: int, window: int
    ) -> None:
        super().__init__(load, origin, connect, topic_of(f"losant/{ledger.device_id}/state"), qos, window)
        self._ledger = ledger

    def begin(self, sent_s: float) -> tuple[int, bytes]:
        number = self._ledger.begin()
        return number, body_of(number, 1, self._ledger.first_ms)

    def acknowledged(self, number: int, sent_s: float) -> None:
        self._ledger.settle(number, 1, ACKNOWLEDGED)
        tally = self._load.tally
        tally.acknowledged += 1
        tally.units += 1
        tally.latency.record(clock() - sent_s)
        self.done()

    def refused(self, number: int) -> None:
        self._ledger.settle(number, 1, REFUSED)
