"""WebhookReplyNode: what is refused, and what does nothing. Real replies are in tests/e2e/test_webhook_workflows.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node
from tests.actors.engine.run_house import run_one
from tests.actors.house import running_house
from trunkline.actors.workflows.triggers.replies import Replies


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


@pytest.mark.parametrize("type", ["WebhookReplyNode", "EndpointReplyNode"])
async def test_a_reply_that_goes_to_nobody_is_noted(tmp_path: Path, type: str) -> None:
    async with running_house(tmp_path) as house:

        async def notes(data: Any, **config: Any) -> list[str]:
            run = await run_one(house, type, {"bodyTemplate": "x", **config}, data)
            assert run.outcome == "completed"
            return [message for _, message, _ in run.notes]

        none = "config.replyIdPath: there is no id at data.replyId, so the reply goes to nobody."
        assert await notes({}) == [none]
        assert await notes({"replyId": 7}) == [none]
        assert await notes({"replyId": "r"}, replyIdPath="data.nope") == [none.replace("replyId,", "nope,")]
        gone = "config.replyIdPath: no call waits for a reply with the id at data.replyId"
        (note,) = await notes({"replyId": "r"})
        assert note.startswith(gone)
        if type == "WebhookReplyNode":
            (note,) = await notes({"replyId": "r"}, isWebsocketMessage=True)
            assert note.startswith(
                "config.replyIdPath: no connection is open that has the id at data.replyId"
            )
        replies = house.system.component(Replies)
        with replies.expect(bytes(12), "r", ""):
            (note,) = await notes({"replyId": "r"})
            assert note.startswith(gone), "the call of another application"
        with replies.expect(house.application, "r", "") as expected:
            assert await notes({"replyId": "r"}) == []
            assert expected.value.body == b"x"
            (note,) = await notes({"replyId": "r"})
            assert note.startswith("The call has an answer already")


async def test_headers_that_are_not_sent_are_noted(tmp_path: Path) -> None:
    rows = [{"keyTemplate": name, "valueTemplate": "x"} for name in ("Set-Cookie", "Connection", "X-Kind")]
    async with running_house(tmp_path) as house:
        with house.system.component(Replies).expect(house.application, "r", "") as expected:
            run = await run_one(
                house, "WebhookReplyNode", {"bodyTemplate": "x", "headerInfo": rows}, {"replyId": "r"}
            )
    assert expected.value.headers == (("X-Kind", "x"),)
    assert [message.split(":")[1].split()[0] for _, message, _ in run.notes] == ["Set-Cookie", "Connection"]
