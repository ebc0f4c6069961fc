"""A node that publishes needs a topic, a broker that there is, and a server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure

TYPE = "MqttMessageNode"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "config.topicTemplate: is not set"),
        ({"topicTemplate": "a", "integrationId": "mine"}, "config.integrationId: is 'mine'; give losant"),
        ({"topicTemplate": "a", "integrationId": "ab" * 11}, "config.integrationId: is 'ababab"),
    ],
)
async def test_what_cannot_be_published_fails_the_run(config: dict[str, Any], said: str) -> None:
    _, message = await failure(TYPE, config)
    assert message.startswith(said)


@pytest.mark.parametrize("broker", ["", "losant", "ab" * 12])
async def test_a_run_without_a_server_publishes_nothing(broker: str) -> None:
    name, _ = await failure(TYPE, {"topicTemplate": "a", "integrationId": broker})
    assert name == "NotInDryRun"
