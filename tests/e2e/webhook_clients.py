"""Clients of webhooks that take WebSocket connections, and the workflows behind them. Owns no test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, open_websocket_url

from tests.e2e.conftest import Server
from tests.e2e.test_webhook_workflows import told
from tests.patience import PATIENCE_S
from trunkline.actors.connections.webhooks.connections import WebhookConnections


def url_of(server: Server, hook: Any, query: str = "") -> str:
    return f"ws{server.url.removeprefix('http')}/webhooks/{hook['token']}{query}"


@asynccontextmanager
async def connected(
    server: Server, hook: Any, query: str = "", **given: Any
) -> AsyncIterator[WebSocketConnection]:
    """A client of a webhook."""
    with trio.fail_after(PATIENCE_S):
        async with open_websocket_url(url_of(server, hook, query), **given) as socket:
            yield socket


async def refused(server: Server, hook: Any, **given: Any) -> tuple[int, str]:
    """The status and the sentence with which a client is refused."""
    with pytest.raises(ConnectionRejected) as caught:
        async with connected(server, hook, **given):
            pass
    body = caught.value.body
    return caught.value.status_code, json.loads(body)["message"] if body else ""


async def closing(socket: WebSocketConnection) -> tuple[int, str | None]:
    """The code and the sentence with which the server closes a connection."""
    try:
        while True:
            await socket.get_message()
    except ConnectionClosed as closed:
        reason = closed.reason
    assert reason is not None
    return reason.code, reason.reason


def echo(**config: Any) -> dict[str, Any]:
    """The nodes of a workflow that shows what it is told, and sends to the client."""
    reply = {"isWebsocketMessage": True, **config}
    return {
        "nodes": [
            {"id": "d", "type": "DebugNode", "config": {}, "outputIds": [["r"]]},
            {"id": "r", "type": "WebhookReplyNode", "config": reply},
        ]
    }


def open_connections(server: Server, hook: Any) -> int:
    connections = server.system.component(WebhookConnections)
    return len(connections._open.get(bytes.fromhex(hook["applicationId"]), {}))


async def data_of(server: Server, flow: Any, length: int) -> list[Any]:
    """The data of the runs of a workflow, once there are so many."""
    with trio.fail_after(PATIENCE_S):
        while len(found := await told(server, flow)) < length:
            await trio.lowlevel.checkpoint()
    return [each["data"] for each in found]
