"""EndpointReplyNode: what it refuses. What it answers is tested with requests (`test_experience_workflows.py`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import BOUNDS, IDENTITY, NOW_MS, failure, flow, node, run_node
from tests.actors.house import running_house
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.engine.dry_run import FlowTest, dry_run
from trunkline.actors.engine.visit import Run
from trunkline.actors.engine.world import DryWorld
from trunkline.actors.workflows.triggers.replies import Replies

TYPE = "EndpointReplyNode"
DATA = {"replyId": "a.b", "text": "x", "list": [1]}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"replyType": "mqtt"}, "config.mqttTopicsTemplate: is not set"),
        ({"replyType": "mqtt", "mqttTopicsTemplate": []}, "config.mqttTopicsTemplate: is not set"),
        (
            {"replyType": "mqtt", "mqttTopicsTemplate": "barn"},
            "config.mqttTopicsTemplate: gives 'barn', not a list of topics",
        ),
        (
            {"replyType": "mqtt", "mqttTopicsTemplate": ["losant/a"]},
            "config.mqttTopicsTemplate: losant/a is not a topic of a device",
        ),
        ({"replyType": "page"}, "config.pageIdTemplate: is not set"),
        ({"replyType": "redirect"}, "config.bodyTemplate: is not set"),
        (
            {"replyType": "redirect", "bodyTemplate": "data.list", "bodyTemplateType": "path"},
            "config.bodyTemplate: gives [1], not an address.",
        ),
        ({"bodyTemplate": "{", "bodyTemplateType": "json"}, "config.bodyTemplate: The text of the template"),
        (
            {"headerInfo": [{"keyTemplate": "a b", "valueTemplate": "x"}]},
            "config.headerInfo: 'a b' is not a valid name",
        ),
        ({"cookieInfo": [{"nameTemplate": "a=b"}]}, "config.cookieInfo: 'a=b' is not a valid name"),
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


async def test_a_dry_run_answers_nobody(tmp_path: Path) -> None:
    async with running_house(tmp_path) as at:
        call_script = partial(at.system.component(ScriptPool).call, owner=at.application)
        definition = flow(node("n", TYPE, {"bodyTemplate": "x"}))

        async def dry() -> str | None:
            run = Run(BOUNDS, NOW_MS, 0, call_script, IDENTITY, [])
            run.opened_world = DryWorld(at.system, at.application, bytes(12), "flow")
            shown = await dry_run(definition, FlowTest(data={"replyId": "a.b"}), run)
            return shown["error"]["name"] if "error" in shown else None

        with at.system.component(Replies).expect(at.application, "a.b", "") as expected:
            assert await dry() == "NotInDryRun"
            assert expected.value is None
        assert await dry() is None
