"""EndpointReplyNode: what it refuses. What it answers is tested with requests (`test_experience_workflows.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node

TYPE = "EndpointReplyNode"
DATA = {"replyId": "a.b", "text": "x", "list": [1]}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"replyType": "mqtt"}, "config.replyType: this server does not answer"),
        ({"replyType": "page"}, "config.pageIdTemplate: is not set"),
        ({"replyType": "redirect"}, "config.bodyTemplate: is not set"),
        (
            {"replyType": "redirect", "bodyTemplate": "data.list", "bodyTemplateType": "path"},
            "config.bodyTemplate: gives [1], not an address.",
        ),
        ({"bodyTemplate": "{", "bodyTemplateType": "json"}, "config.bodyTemplate: The text of the template"),
        (
            {"headerInfo": [{"keyTemplate": "a b", "valueTemplate": "x"}]},
            "config.headerInfo: 'a b' is no name",
        ),
        ({"cookieInfo": [{"nameTemplate": "a=b"}]}, "config.cookieInfo: 'a=b' is no name"),
        (
            {"cookieInfo": [{"nameTemplate": "a", "maxAgeTemplate": "{{data.text}}"}]},
            "config.cookieInfo: maxAgeTemplate gives 'x', not milliseconds.",
        ),
    ],
)
async def test_a_reply_that_cannot_be_made_ends_the_run(config: dict[str, Any], said: str) -> None:
    name, message = await failure(TYPE, config, DATA)
    assert (name, message[: len(said)]) == ("ValidationError", said)


async def test_without_an_id_nothing_happens() -> None:
    for data in ({}, {"replyId": ""}, {"replyId": 7}):
        shown = await run_node(TYPE, {"bodyTemplate": "{", "bodyTemplateType": "json"}, data)
        assert (shown["output"], shown["problems"]) == (0, [])
