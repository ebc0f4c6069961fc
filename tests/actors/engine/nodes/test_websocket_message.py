"""A node that sends to a WebSocket server needs an integration, a message that fits its encoding, and a server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure

TYPE = "WebsocketMessageNode"
ID = "ab" * 12


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"messageTemplate": "x"}, "config.integrationId: is not set"),
        ({"integrationId": ID}, "config.messageTemplate: is not set"),
        (
            {"integrationId": "mine", "messageTemplate": "x"},
            "config.integrationId: gives 'mine'; give the id",
        ),
        (
            {"integrationId": ID, "messageTemplate": "x", "encodingTemplate": "hex"},
            "config.messageTemplate: gives a text that is not written as hex.",
        ),
    ],
)
async def test_what_cannot_be_sent_fails_the_run(config: dict[str, Any], said: str) -> None:
    _, message = await failure(TYPE, config)
    assert message.startswith(said)


async def test_a_run_without_a_server_sends_nothing() -> None:
    name, _ = await failure(TYPE, {"integrationId": ID, "messageTemplate": "x"})
    assert name == "NotInDryRun"
