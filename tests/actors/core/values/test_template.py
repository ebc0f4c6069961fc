"""Templates: paths are replaced by values, and a value in a JSON text stays a value."""

from __future__ import annotations

import json

import pytest

from trunkline.actors.core.values.template import fill, fill_all, fill_json

VALUES = {"ctx": {"n": 5, "text": 'a"}, {"b": "\\', "on": True, "tag": {"key": "k"}}}


def test_a_text_that_is_one_path_becomes_the_value() -> None:
    assert fill("{{ctx.n}}", VALUES) == 5
    assert fill(" {{ctx.tag}} ", VALUES) == {"key": "k"}
    assert fill("{{ctx.none}}", VALUES) == ""
    assert fill("{{{ctx.n}}}", VALUES) == 5
    assert fill("{{ctx.n}} of {{ctx.on}}{{ctx.tag}}", VALUES) == "5 of true"


@pytest.mark.parametrize("text", [VALUES["ctx"]["text"], '"', "\\", "\n", "\u2028", "{{ctx.n}}"])
def test_a_value_stays_within_its_json_string(text: object) -> None:
    filled = fill_json('{"name": "{{ctx.text}}", "n": {{ctx.n}}}', {"ctx": {"text": text, "n": 5}})
    assert json.loads(filled) == {"name": text, "n": 5}


def test_a_json_text_that_is_one_path_is_the_value() -> None:
    assert fill_json("{{ctx.q}}", {"ctx": {"q": '{"a": 1}'}}) == '{"a": 1}'


def test_fields_are_filled_by_their_name() -> None:
    node = {
        "query": '{"a": "{{ctx.text}}"}',
        "label": "{{ctx.n}}",
        "rowTemplate": "{{ctx.n}} {{device.name}}",
    }
    filled = fill_all([node], VALUES, queries={"query"}, later={"rowTemplate"})
    assert json.loads(filled[0]["query"]) == {"a": VALUES["ctx"]["text"]}
    assert (filled[0]["label"], filled[0]["rowTemplate"]) == (5, node["rowTemplate"])
