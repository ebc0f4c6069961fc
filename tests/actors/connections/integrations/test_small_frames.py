"""A server that sends thousands of small packets at once: others work between them."""

from __future__ import annotations

import socket

import trio

from tests.patience import PATIENCE_S
from tests.turns_of_tasks import counted_steps
from trunkline.actors.connections.integrations.mqtt import Account, MqttSession
from trunkline.actors.connections.integrations.websocket import shake_hands
from trunkline.http.wire.websocket_frames import accept_of, frame

CONNACK, PINGRESP, PUBLISH = b"\x20\x02\x00\x00", b"\xd0\x00", b"\x30\x04\x00\x01ax"
TEXT_BEGINS, CONTINUES = b"\x01\x00", b"\x00\x00"
"""Fragments without a byte."""


def pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    first, second = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in (ours, theirs))
    return first, second


async def test_others_work_between_the_packets_of_a_broker() -> None:
    ours, broker = pair()
    account = Account("device", None, None, clean=True, version="3.1.1", topics=[])
    session = MqttSession(ours, account, bytes_max=1 << 20, timeout_s=30, now_ms=lambda: 0)
    with trio.fail_after(PATIENCE_S):
        async with broker, trio.open_nursery() as nursery:
            await broker.send_all(CONNACK)
            await session.open(nursery)
            await broker.send_all(PINGRESP * 10_000 + PUBLISH)
            with counted_steps() as steps:
                (arrived,) = await session.receive()
            assert arrived.text == "x"
            assert steps.count > 300
            nursery.cancel_scope.cancel()


async def test_others_work_between_the_fragments_of_a_websocket() -> None:
    ours, server = pair()
    with trio.fail_after(PATIENCE_S):
        async with server, trio.open_nursery() as nursery:

            async def serve() -> None:
                head = bytes(await server.receive_some())
                (key,) = [
                    line.partition(b": ")[2]
                    for line in head.split(b"\r\n")
                    if line.startswith(b"Sec-WebSocket-Key")
                ]
                accepted = b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                await server.send_all(accepted + b"Sec-WebSocket-Accept: " + accept_of(key) + b"\r\n\r\n")
                await server.send_all(frame(1, b"first") + TEXT_BEGINS + CONTINUES * 32_000 + b"\x80\x01x")

            nursery.start_soon(serve)
            with counted_steps() as steps:
                session = await shake_hands(nursery, ours, "h", "/", [], bytes_max=100)
                assert await session.get_message() == "first"
                assert await session.get_message() == "x"
            assert steps.count > 100
            nursery.cancel_scope.cancel()
