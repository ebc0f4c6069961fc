"""Texts with rows become arrays of objects, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.engine.nodes import csv_nodes
from trunkline.actors.engine.visit import Bounds

PATHS = {"source": "data.s", "destination": "data.d"}
LARGE = Bounds(steps=10, loop_items=2_000, payload_bytes=5_000_000)


@pytest.mark.parametrize(
    ("text", "config", "expected"),
    [
        ("a,b\n1,2\n3,4\n", {}, [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        ("a,b\r\n1,\r\n\r\n", {"recordDelimiterTemplate": "\n"}, [{"a": "1", "b": ""}]),
        ('a,b\n"x,\ny","say ""hi"""', {}, [{"a": "x,\ny", "b": 'say "hi"'}]),
        (
            "a;b\n'x;y';2",
            {"delimiterTemplate": "{{data.by}}", "quoteCharTemplate": "'"},
            [{"a": "x;y", "b": "2"}],
        ),
        ('a\n"x\\"y"', {"escapeCharTemplate": "\\"}, [{"a": 'x"y'}]),
        ("a\tb\n1\t2", {"delimiterTemplate": "\t"}, [{"a": "1", "b": "2"}]),
        ("\ufeffa\n1", {"stripBom": True}, [{"a": "1"}]),
        ("\ufeffa\n1", {}, [{"\ufeffa": "1"}]),
        ("", {}, []),
        ("a,b", {}, []),
        ("a,b\n1", {}, "The row at line 2 has 1 values; there are 2 columns."),
        (
            'a,b\n"1,2\n3,4',
            {},
            "The text is not valid CSV at line 2: a quotation mark in the row that begins here is never closed.",
        ),
        (",".join(["c"] * 1001), {}, "The text has 1001 columns; 1000 are accepted."),
    ],
)
async def test_decode(text: str, config: dict[str, Any], expected: Any) -> None:
    shown = await run_node("CSVDecodeNode", {**PATHS, **config}, {"s": text, "by": ";"})
    if isinstance(expected, str):
        expected = {"error": {"message": expected}}
    assert shown["data"]["d"] == expected


@pytest.mark.parametrize(
    ("items", "config", "expected"),
    [
        ([{"a": 1, "b": "x"}, {"a": 2.5, "b": "y"}], {}, "a,b\n1,x\n2.5,y\n"),
        ([{"a": 1}, {"b": True}], {}, "a,b\n1,\n,true\n"),
        (
            [{"a": 'say "hi"', "b": "x,y"}],
            {"recordDelimiterTemplate": "\r\n"},
            'a,b\r\n"say ""hi""","x,y"\r\n',
        ),
        ([{"a": None, "b": [1, {"c": 2}]}], {"delimiterTemplate": ";"}, 'a;b\n;"[1,{""c"":2}]"\n'),
        ([{"a": 'x"y'}], {"escapeCharTemplate": "\\"}, 'a\n"x\\"y"\n'),
        ([], {}, ""),
        ([{"a": ""}], {}, 'a\n""\n'),
        (
            [{"a": 1, "b": 2}],
            {"headerTemplateType": "stringTemplates", "headerTemplate": ["b", "{{data.by}}"]},
            "b,;\n2,\n",
        ),
        ([{"a": 1, "b": 2}], {"headerTemplateType": "payloadPath", "headerTemplate": "data.h"}, "b,a\n2,1\n"),
        (
            [{str(at): 0 for at in range(1001)}],
            {},
            {"error": {"message": "There are 1001 columns; 1000 are accepted."}},
        ),
    ],
)
async def test_encode(items: Any, config: dict[str, Any], expected: Any) -> None:
    shown = await run_node("CSVEncodeNode", {**PATHS, **config}, {"s": items, "by": ";", "h": ["b", "a"]})
    assert shown["data"]["d"] == expected


async def test_what_is_large_is_converted_as_well() -> None:
    items = [{"a": str(at), "b": "x" * 100} for at in range(1_000)]
    text = (await run_node("CSVEncodeNode", PATHS, {"s": items}, bounds=LARGE))["data"]["d"]
    assert len(text) > csv_nodes.INLINE_CHARS_MAX
    assert (await run_node("CSVDecodeNode", PATHS, {"s": text}, bounds=LARGE))["data"]["d"] == items
    name, _ = await failure("CSVDecodeNode", PATHS, {"s": text}, bounds=LARGE._replace(payload_bytes=150_000))
    assert name == "PayloadTooLarge"


async def test_what_is_read_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_nodes, "VALUES_MAX", 3)
    error = (await run_node("CSVDecodeNode", PATHS, {"s": "a,b\n1,2\n3,4\n"}))["data"]["d"]["error"]
    assert error["message"] == "The text has more than 262144 rows, or more than 3 values."


@pytest.mark.parametrize(
    ("type", "config", "value", "message"),
    [
        ("CSVDecodeNode", {"source": ""}, "", "config.source: is not set"),
        ("CSVDecodeNode", {"destination": ""}, "", "config.destination: is not set"),
        ("CSVDecodeNode", {}, 5, "config.source: leads to 5, not to a text."),
        (
            "CSVDecodeNode",
            {"delimiterTemplate": "::"},
            "",
            "config.delimiterTemplate: gives '::', not one character",
        ),
        (
            "CSVDecodeNode",
            {"quoteCharTemplate": ","},
            "",
            "config.delimiterTemplate: is the quote or the escape",
        ),
        (
            "CSVDecodeNode",
            {"recordDelimiterTemplate": "|"},
            "",
            "config.recordDelimiterTemplate: gives '|'; rows",
        ),
        ("CSVEncodeNode", {}, [{}] * 101, "config.source: 101 items; an array has at most 100 here."),
        ("CSVEncodeNode", {}, [1], "config.source: leads to [1], not to an array of objects."),
        ("CSVEncodeNode", {"headerTemplateType": "x"}, [], "config.headerTemplateType: is 'x'; give one of"),
        (
            "CSVEncodeNode",
            {"headerTemplateType": "stringTemplates", "headerTemplate": "a"},
            [],
            "config.headerTemplate: give a list of texts",
        ),
        (
            "CSVEncodeNode",
            {"headerTemplateType": "payloadPath", "headerTemplate": "data.x"},
            [],
            "config.headerTemplate: leads to nothing, not to an array of names.",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(
    type: str, config: dict[str, Any], value: Any, message: str
) -> None:
    name, told = await failure(type, {**PATHS, **config}, {"s": value})
    assert name in ("ValidationError", "TooManyItems")
    assert told.startswith(message)


CELL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.fixed_dictionaries({"a": CELL, "b": CELL, "c": CELL}), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from([None, "\\"]),
)
def test_what_is_written_is_read(items: list[dict[str, str]], delimiter: str, escape: str | None) -> None:
    form: csv_nodes._Form = {
        "delimiter": delimiter,
        "quotechar": '"',
        "escapechar": escape,
        "doublequote": escape is None,
    }
    assert csv_nodes._rows(csv_nodes._text(items, None, "\n", form), form) == items
