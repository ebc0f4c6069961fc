"""The loads of MQTT: their packets are those of the protocol, and what they publish is audited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.bench import mqtt_packets
from trunkline.bench.errors import BenchError, ConnectFailed, WireError
from trunkline.bench.ledger import Audit
from trunkline.bench.mqtt_topic import TopicLedger, window_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.result import Result
from trunkline.bench.run import Scenario, run_scenario
from trunkline.bench.scenarios.mqtt import MqttScenario, MqttTopicScenario
from trunkline.bench.scenarios.mqtt_idle import MqttIdleScenario
from trunkline.bench.scenarios.mqtt_retained import MqttRetainedScenario
from trunkline.bench.scenarios.mqtt_storm import MqttStormScenario
from trunkline.bench.session import Session
from trunkline.bench.stage import Plan
from trunkline.http.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    V5,
    Ack,
    Connect,
    Filter,
    Publish,
    Subscribe,
)
from trunkline.http.mqtt.reader import PacketReader
from trunkline.http.serve import serve
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits

THROTTLES = ("send_state", "set_connection_status", "mqtt_client", "mqtt_topic", "mqtt_connect")
EMAIL, PASSWORD = "bench@example.org", "Correct-horse-9!"
Start = Callable[..., Any]


@pytest.mark.parametrize("size", [1, 100, 125, 20_000])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_server_reads_the_packets_of_a_load(qos: int, size: int) -> None:
    topic = mqtt_packets.topic_of("bench/a")
    acks = [mqtt_packets.PUBACK, mqtt_packets.PUBREC, mqtt_packets.PUBREL, mqtt_packets.PUBCOMP]
    sent = [
        mqtt_packets.connect("c" * size, "user", "secret"),
        mqtt_packets.subscribe("bench/a", qos),
        mqtt_packets.publish(topic, qos, 300, b"x" * size),
        *(mqtt_packets.ack(first, b"\x01\x2c") for first in acks),
    ]
    connect, subscribe, publish, *answers = PacketReader(1 << 20).feed(b"".join(sent))
    assert connect == Connect(V5, "c" * size, True, 0, None, "user", b"secret", {})
    assert subscribe == Subscribe(1, (Filter("bench/a", qos),), {})
    assert publish == Publish("bench/a", b"x" * size, qos, packet_id=300 if qos else 0)
    assert answers == [Ack(type, 300) for type in (PUBACK, PUBREC, PUBREL, PUBCOMP)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "0x00"),
        (b"\x87", "0x87"),
        (b"\x96\x00", "0x96"),
        (b"\x96\x07\x1f\x00\x04slow", "0x96: slow"),
        (b"\x96\x03\x21\x00\x01", "0x96"),
    ],
)
def test_the_reason_of_a_refusal_is_read(body: bytes, reason: str) -> None:
    assert mqtt_packets.reason_of(body, 0) == reason


def test_the_messages_under_way_fit_the_queue_of_a_subscriber() -> None:
    assert [window_of(1, 1), window_of(1, 64), window_of(1, 1000)] == [64, 64, 32]
    assert [window_of(64, 1), window_of(5000, 1), window_of(1, 50_000)] == [8, 1, 1]


class DoneMessages:
    """Takes the place of a publisher: it notes how many of its messages are done."""

    count = 0

    def arrived(self, sent_s: float, subscribers: int) -> None:
        self.count += 1


def test_each_way_in_which_a_message_can_go_wrong_is_found() -> None:
    ledger, publisher = TopicLedger("bench/1", 1, 2), DoneMessages()
    for _ in range(5):
        ledger.begin(publisher, 0.0)  # type: ignore[arg-type]
    for number in (0, 1, 2):
        ledger.acknowledge(number)
    ledger.refuse(3)
    first, second = ledger.seen
    for payload in (b"0", b"1", b"1", b"2", b"3", b"4", b"5", b"-1", b"", b"x"):
        ledger.arrive(first, payload)
    for payload in (b"0", b"2"):
        ledger.arrive(second, payload)
    assert publisher.count == 2
    found = Audit()
    ledger.audit(found)
    assert (found.acknowledged, found.read, found.missing, found.unexpected) == (6, 7, 1, 4 + 2)
    assert (found.unknown, found.unknown_found) == (2, 1)
    assert sorted(found.examples) == [
        "missing: bench/1: subscriber 1: message 1 was acknowledged and never arrived",
        "unexpected: bench/1: subscriber 0: message 1 arrived 2 times",
    ]


@pytest.fixture
async def start(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a server with MQTT: a signed-in session, and the port of MQTT."""

    async def start_server(*, throttles: bool) -> tuple[Session, int]:
        settings = Settings(
            data_dir=str(tmp_path / "data"),
            port=0,
            mqtt_port=0,
            admin_email=EMAIL,
            admin_password=PASSWORD,
            log_level="error",
            limits=Limits() if throttles else Limits().override(dict.fromkeys(THROTTLES, "off")),
        )
        serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
        session = Session(serving.url, patience_s=20)
        await session.login(EMAIL, PASSWORD)
        return session, serving.mqtt_ports[0].number

    yield start_server
    nursery.cancel_scope.cancel()


async def run(scenario: Scenario, session: Session, connections: int = 3) -> Result:
    plan = Plan(connections=connections, duration_s=0.2, warmup_s=0.1, ceiling=False)
    with trio.fail_after(PATIENCE_S):
        return await run_scenario(scenario, session, plan, ProgressBar())


@pytest.mark.slow
async def test_every_state_that_was_acknowledged_over_mqtt_is_found(start: Start) -> None:
    session, port = await start(throttles=False)
    scenario = MqttScenario(devices=4, qos=[0, 1, 2], rest=True, mqtt_port=port)
    result = await run(scenario, session)
    audit = result.audit
    assert (audit.missing, audit.different, audit.unexpected, audit.unknown) == (0, 0, 0, 0)
    sent = sum(len(ledger.outcomes) for ledger in scenario.fleet.ledgers)
    assert audit.acknowledged == audit.read == sent
    assert [stage.name for stage in result.stages] == ["REST", "QoS 0", "QoS 1", "QoS 2"]
    assert all(stage.calls[0].units_in_all for stage in result.stages)


@pytest.mark.slow
@pytest.mark.parametrize("is_fan_in", [False, True], ids=["fan-out", "fan-in"])
async def test_every_message_arrives_once_at_every_subscriber(start: Start, is_fan_in: bool) -> None:
    session, port = await start(throttles=False)
    scenario = MqttTopicScenario(qos=[0, 1, 2], is_fan_in=is_fan_in, mqtt_port=port)
    result = await run(scenario, session)
    audit = result.audit
    assert (audit.missing, audit.unexpected, audit.unknown) == (0, 0, 0)
    sent = sum(len(ledger.outcomes) for ledger in scenario.ledgers)
    assert audit.acknowledged == audit.read == sent * (1 if is_fan_in else 3)
    assert all(ledger.outcomes for ledger in scenario.ledgers)


@pytest.mark.slow
async def test_a_message_that_never_arrived_is_a_loss(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """One arrival is taken out of the ledger after the load."""
    session, port = await start(throttles=False)
    scenario = MqttTopicScenario(qos=[1], is_fan_in=False, mqtt_port=port)
    perform = scenario.perform

    async def with_a_loss(run: Any) -> None:
        await perform(run)
        scenario.ledgers[0].seen[1][0] = 0

    monkeypatch.setattr(scenario, "perform", with_a_loss)
    result = await run(scenario, session)
    assert (result.verdict, result.audit.missing) == ("loss", 1)


@pytest.mark.slow
async def test_a_storm_of_clients_is_served_twice(start: Start) -> None:
    session, port = await start(throttles=False)
    result = await run(MqttStormScenario(devices=20, mqtt_port=port), session)
    assert result.audit.acknowledged == result.audit.read == 40
    assert [stage.name for stage in result.stages] == ["first connection", "storm"]


@pytest.mark.slow
async def test_the_memory_of_idle_clients_is_measured(start: Start) -> None:
    session, port = await start(throttles=False)
    scenario = MqttIdleScenario(devices=20, mqtt_port=port)
    result = await run(scenario, session)
    assert result.audit.acknowledged == result.audit.read == 20
    (stage,) = result.stages
    assert stage.delays[0].latency.count == 20
    assert [figure.name for figure in stage.figures] == ["server memory a client"]


def test_a_session_that_outlives_its_connection_is_asked_for() -> None:
    (connect,) = PacketReader(1 << 20).feed(mqtt_packets.connect("c", "user", "secret", session_s=3600))
    assert isinstance(connect, Connect)
    assert connect.properties == {"session_expiry_interval": 3600}


@pytest.mark.slow
async def test_retained_messages_are_read_by_each_new_subscriber(start: Start) -> None:
    session, port = await start(throttles=False)
    scenario = MqttRetainedScenario(messages=600, mqtt_port=port)
    result = await run(scenario, session)
    audit = result.audit
    assert (result.verdict, audit.missing, audit.unexpected) == ("sound", 0, 0)
    assert audit.acknowledged == audit.read == 3 * 600
    assert [stage.name for stage in result.stages] == ["publishing", "reading"]


async def test_retained_messages_that_do_not_arrive_or_arrive_twice_are_found() -> None:
    scenario = MqttRetainedScenario(messages=3, mqtt_port=1)
    scenario.acknowledged[:] = (1, 1, 0)
    scenario.seen = [bytearray((0, 2, 0)), bytearray((1, 1, 1))]
    found = Audit()
    await scenario.audit(None, found, ProgressBar())  # type: ignore[arg-type] # nothing is read from the server
    assert (found.acknowledged, found.read, found.missing, found.unexpected) == (4, 4, 1, 1)
    assert found.examples == [
        "missing: subscriber 0: the retained message of topic 0 never arrived",
        "unexpected: subscriber 0: that of topic 1 arrived 2 times",
    ]


@pytest.mark.slow
async def test_a_client_that_is_disconnected_ends_the_load_and_says_why(start: Start) -> None:
    session, port = await start(throttles=True)
    with pytest.raises(WireError, match="disconnected an MQTT client with 0x96: more than 30 messages"):
        await run(MqttScenario(devices=1, qos=[1], rest=False, mqtt_port=port), session, connections=1)


@pytest.mark.slow
async def test_a_client_that_is_refused_ends_the_load_and_says_why(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, port = await start(throttles=False)
    scenario = MqttScenario(devices=1, qos=[1], rest=False, mqtt_port=port)
    prepare = scenario.prepare

    async def with_a_wrong_secret(*given: Any) -> None:
        await prepare(*given)
        scenario.key._secret = "wrong"

    monkeypatch.setattr(scenario, "prepare", with_a_wrong_secret)
    with pytest.raises(ConnectFailed, match="refused an MQTT client with 0x86"):
        await run(scenario, session, connections=1)


async def test_more_clients_than_devices_are_refused_before_anything_is_created(start: Start) -> None:
    session, port = await start(throttles=False)
    with pytest.raises(BenchError, match=r"--connections: 3 MQTT clients need as many --devices\."):
        await run(MqttScenario(devices=2, qos=[1], rest=False, mqtt_port=port), session)
