"""Measures the codec of MQTT: packets read from buffers of 64 KiB and packets written. Run it from the checkout:

    .venv/bin/python -m tests.bench.mqtt_codec [--seconds 0.5] [--payload 100]

For each kind of packet, a buffer of 64 KiB is filled with it, and read again and again by one reader; then packets are
written one by one. Beside each figure stands that of `mqtt5`, a codec in Rust for 5.0, in the same run: it reads one
packet after another from a buffer. The seconds are those of the processor, the best of five rounds, so a machine with
other work disturbs less.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from typing import Final

import mqtt5

from trunkline.http.mqtt import packets as p
from trunkline.http.mqtt import writer
from trunkline.http.mqtt.reader import PacketReader

READ_BYTES: Final = 64 * 1024
ROUNDS: Final = 5
TOPIC: Final = "losant/5f0a1b2c3d4e5f6071829304/state"
PROPERTIES: Final[p.Properties] = {
    "payload_format_indicator": 1,
    "content_type": "application/json",
    "user_property": [("site", "north")],
}


def rate(seconds: float, many: int, work: Callable[[], object]) -> float:
    """How many packets a second of the processor are done, where one call does so many."""
    best = 0.0
    for _ in range(ROUNDS):
        calls, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < seconds / ROUNDS:
            work()
            calls += 1
        best = max(best, calls * many / spent)
    return best


def full_buffer(packet: bytes) -> tuple[bytes, int]:
    many = READ_BYTES // len(packet)
    return packet * many, many


def read_rate(seconds: float, version: int, packet: bytes) -> float:
    reader = PacketReader(256 * 1024)
    reader.feed(writer.connect(p.Connect(version, "bench")))
    buffer, many = full_buffer(packet)
    assert len(reader.feed(buffer)) == many
    return rate(seconds, many, lambda: reader.feed(buffer))


def peer_read_rate(seconds: float, packet: bytes) -> float:
    buffer, many = full_buffer(packet)

    def read() -> None:
        view = memoryview(buffer)
        at = 0
        while at < len(view):
            _, size = mqtt5.read(view[at:])
            at += size

    return rate(seconds, many, read)


def say(what: str, ours: float, theirs: float | None = None) -> None:
    beside = "" if theirs is None else f"   mqtt5 {theirs:>12,.0f}/s"
    sys.stdout.write(f"{what:<34} {ours:>12,.0f}/s{beside}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.5, help="of the processor, for each figure")
    parser.add_argument("--payload", type=int, default=100, help="bytes of a message")
    arguments = parser.parse_args()
    seconds, payload = arguments.seconds, b"x" * arguments.payload
    sys.stdout.write(f"payload {arguments.payload} bytes, topic {len(TOPIC)} bytes\n")
    for qos, own in itertools.product((0, 1), (p.NONE, PROPERTIES)):
        packet = p.Publish(TOPIC, payload, qos, packet_id=qos, properties=own)
        for version in (p.V3_1_1, p.V5):
            if own and version != p.V5:
                continue
            data = writer.publish(version, packet)
            what = f"read PUBLISH QoS {qos} v{version}" + (" with properties" if own else "")
            theirs = peer_read_rate(seconds, data) if version == p.V5 else None
            say(what, read_rate(seconds, version, data), theirs)
    puback = writer.ack(p.V5, p.PUBACK, 7)
    say("read PUBACK v5", read_rate(seconds, p.V5, puback), peer_read_rate(seconds, puback))
    say(
        "write PUBACK v5",
        rate(seconds, 1000, lambda: [writer.ack(p.V5, p.PUBACK, number) for number in range(1, 1001)]),
        rate(seconds, 1000, lambda: [mqtt5.PubAckPacket(number).write() for number in range(1, 1001)]),
    )
    encoded = writer.encoded_publish(p.V5, TOPIC, payload, 1)
    say(
        "write PUBLISH QoS 1 v5, encoded once",
        rate(seconds, 1000, lambda: [encoded.packet(number) for number in range(1, 1001)]),
    )
    say(
        "write PUBLISH QoS 1 v5, anew",
        rate(
            seconds,
            1000,
            lambda: [writer.encoded_publish(p.V5, TOPIC, payload, 1).packet(n) for n in range(1, 1001)],
        ),
        rate(
            seconds,
            1000,
            lambda: [
                mqtt5.PublishPacket(TOPIC, payload, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=n).write()
                for n in range(1, 1001)
            ],
        ),
    )


if __name__ == "__main__":
    main()
