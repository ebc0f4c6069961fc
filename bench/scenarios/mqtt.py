"""MQTT: states by QoS beside those over REST, and messages of one topic to many clients or from many.

Each connection is a client of its own: a device that reports states, or a publisher or subscriber of the topic.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from trunkline.bench.errors import BenchError
from trunkline.bench.fleet import Fleet
from trunkline.bench.ledger import Audit
from trunkline.bench.load import Caller, Tally
from trunkline.bench.mqtt_load import MqttLoad
from trunkline.bench.mqtt_packets import connect
from trunkline.bench.mqtt_states import Device, window_of
from trunkline.bench.mqtt_topic import TopicLedger, TopicPublisher, TopicSubscriber
from trunkline.bench.mqtt_topic import window_of as topic_window_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor
from trunkline.bench.run import Run, Scenario
from trunkline.bench.scenarios.link import audit_many
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan
from trunkline.bench.transport import Origin

QOS = (0, 1, 2)


class AccessKey:
    """A key of an application with which any client of it may log in over MQTT."""

    def __init__(self, key: str, secret: str) -> None:
        self._key = key
        self._secret = secret

    @classmethod
    async def create(cls, session: Session, application_id: str) -> AccessKey:
        """Create a key for all devices and topics of an application."""
        made = await session.call("POST", f"/applications/{application_id}/keys", {})
        return cls(made["key"], made["secret"])

    def connect(self, client_id: str, *, session_s: int = 0) -> bytes:
        """The CONNECT of a client, whose session outlives the connection for ``session_s``."""
        return connect(client_id, self._key, self._secret, session_s=session_s)


class MqttScenario(Scenario):
    """A stage of states for each QoS, and one over REST."""

    name = "mqtt"
    title = "States over MQTT"

    def __init__(self, *, devices: int, qos: list[int], rest: bool, mqtt_port: int) -> None:
        self.devices = devices
        self.qos = qos
        self.rest = rest
        self.mqtt_port = mqtt_port

    def connections(self, plan: Plan) -> int:
        if plan.connections > self.devices:
            raise BenchError(f"--connections: {plan.connections:,} MQTT clients need as many --devices.")
        return plan.connections

    def settings(self) -> dict[str, object]:
        return {"devices": self.devices, "QoS": ", ".join(str(level) for level in self.qos)}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        self.fleet = await Fleet.create(session, bar, self.name, self.devices)
        self.key = await AccessKey.create(session, self.fleet.application_id)
        self.origin = mqtt_origin(session, self.mqtt_port)

    async def perform(self, run: Run) -> None:
        if self.rest:
            await run.load("REST", self._posts)
        for level in self.qos:
            await run.load_with(f"QoS {level}", partial(self._load, run.plan.connections, level))

    def _posts(self, rehearsal: bool) -> list[Caller]:
        return self.fleet.state_posts(Tally("posts", "states"), rehearsal=rehearsal)

    def _load(self, count: int, level: int, reactor: Reactor) -> MqttLoad:
        load = MqttLoad(reactor, Tally(f"messages with QoS {level}", "states"))
        load.publishers = [
            Device(load, self.origin, self.key.connect(ledger.device_id), ledger, level, window_of(count))
            for ledger in self.fleet.ledgers[:count]
        ]
        return load

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        await audit_many(self.fleet, session, found, bar)


class MqttTopicScenario(Scenario):
    """A stage for each QoS: one client publishes to many subscribers of a topic, or many to one."""

    writes = False

    def __init__(self, *, qos: list[int], is_fan_in: bool, mqtt_port: int) -> None:
        self.name = "mqtt fan-in" if is_fan_in else "mqtt fan-out"  # type: ignore[misc] # one class has both
        self.title = "Fan-in over MQTT" if is_fan_in else "Fan-out over MQTT"  # type: ignore[misc]
        self.qos = qos
        self.is_fan_in = is_fan_in
        self.mqtt_port = mqtt_port
        self.ledgers: list[TopicLedger] = []

    def connections(self, plan: Plan) -> int:
        return plan.connections + 1

    def settings(self) -> dict[str, object]:
        return {"QoS": ", ".join(str(level) for level in self.qos)}

    async def prepare(self, session: Session, bar: ProgressBar) -> None:
        application_id = await session.create_application(f"bench {self.name}")
        self.key = await AccessKey.create(session, application_id)
        self.origin = mqtt_origin(session, self.mqtt_port)

    async def perform(self, run: Run) -> None:
        many = run.plan.connections
        publishers, subscribers = (many, 1) if self.is_fan_in else (1, many)
        for level in self.qos:
            ledger = TopicLedger(f"bench/{level}", level, subscribers)
            self.ledgers.append(ledger)
            name = f"QoS {level}, {publishers:,} to {subscribers:,}"
            await run.load_with(name, partial(self._load, publishers, ledger))

    def _load(self, publishers: int, ledger: TopicLedger, reactor: Reactor) -> MqttLoad:
        load = MqttLoad(reactor, Tally(f"messages with QoS {ledger.qos}", "deliveries"))
        window = topic_window_of(publishers, len(ledger.seen))
        load.publishers = [
            TopicPublisher(load, self.origin, self.key.connect(f"publisher-{number}"), ledger, window)
            for number in range(publishers)
        ]
        load.others = [
            TopicSubscriber(load, self.origin, self.key.connect(f"subscriber-{number}"), ledger, seen)
            for number, seen in enumerate(ledger.seen)
        ]
        return load

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        for ledger in self.ledgers:
            ledger.audit(found)


def mqtt_origin(session: Session, port: int) -> Origin:
    """The address of MQTT at the server of a session, with TLS if the session has it."""
    return replace(session.origin, port=port, prefix="")
