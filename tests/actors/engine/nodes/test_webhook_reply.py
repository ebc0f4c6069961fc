"""WebhookReplyNode: what is refused, and what does nothing. Real replies are in tests/e2e/test_webhook_workflows.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node


async def test_without_a_caller_nothing_happens() -> None:
    for data in ({}, {"replyId": "gone"}):
        for config in ({"bodyTemplate": "x"}, {"bodyTemplate": "x", "isWebsocketMessage": True}):
            assert (await run_node("WebhookReplyNode", config, data))["output"] == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"replyType": "page"}, "config.replyType: is 'page'; give custom or redirect."),
        ({"isWebsocketMessage": True}, "config.bodyTemplate: is not set"),
        (
            {"isWebsocketMessage": True, "bodyTemplate": "x", "encodingTemplate": "rot13"},
            "The encoding is 'rot13'; give one of utf8",
        ),
        (
            {"isWebsocketMessage": True, "bodyTemplate": "xyz", "encodingTemplate": "hex"},
            "config.bodyTemplate: gives a text that is not written as hex.",
        ),
        (
            {"isWebsocketMessage": True, "bodyTemplate": "data.text", "bodyTemplateType": "path"},
            "config.bodyTemplate: gives 262145 bytes; a body has at most 262144.",
        ),
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
