"""Sessions with a broker that takes nothing more: a message is not sent, and the connection is not used any more."""

from __future__ import annotations

import socket

import pytest
import trio

from tests.patience import PATIENCE_S
from trunkline.actors.connections.integrations.mqtt import Account, MqttSession
from trunkline.actors.connections.integrations.session import Failed, Unsent

CONNACK = b"\x20\x02\x00\x00"


async def test_no_packet_follows_a_part_of_another_one() -> None:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    broker = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    account = Account("device", None, None, clean=True, version="3.1.1", topics=[])
    session = MqttSession(
        trio.SocketStream(trio.socket.from_stdlib_socket(ours)),
        account,
        bytes_max=1 << 20,
        timeout_s=0.1,
        now_ms=lambda: 0,
    )
    async with broker, trio.open_nursery() as nursery:
        await broker.send_all(CONNACK)
        await session.open(nursery)
        with pytest.raises(Unsent):
            await session.publish("a", "x" * 5_000_000)
        with trio.fail_after(PATIENCE_S), pytest.raises(Failed):
            await session.receive()
        nursery.cancel_scope.cancel()
