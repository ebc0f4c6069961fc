"""WebhookReplyNode: what is refused, and what does nothing. Real replies are in tests/e2e/test_webhook_workflows.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node


async def test_without_a_caller_nothing_happens() -> None:
    for data in ({}, {"replyId": "gone"}):
        assert (await run_node("WebhookReplyNode", {"bodyTemplate": "x"}, data))["output"] == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"replyType": "page"}, "config.replyType: is 'page'; give custom or redirect."),
        ({"isWebsocketMessage": True}, "config.isWebsocketMessage: this server sends no messages"),
        ({"cookieInfo": [{"nameTemplate": "a"}]}, "config.cookieInfo: callers of webhooks get no cookies"),
        ({"replyType": "redirect"}, "config.bodyTemplate: is not set"),
        (
            {"bodyTemplate": "data.text", "bodyTemplateType": "path"},
            "config.bodyTemplate: gives 262145 bytes; a body has at most 262144.",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("WebhookReplyNode", config, {"replyId": "r", "text": "x" * 262_145})
    assert name == "ValidationError"
    assert told.startswith(message)
