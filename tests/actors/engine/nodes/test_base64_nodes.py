"""Texts and arrays of bytes become base64, and base64 becomes one of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.core.formulas.byte_texts import FROM_TEXT, TO_TEXT
from trunkline.actors.engine.visit import Bounds

PATHS = {"source": "data.s", "destination": "data.d"}


@pytest.mark.parametrize(
    ("value", "expected"), [("", ""), ("hé", "aMOp"), ([104, 105], "aGk="), ([], ""), ([0, 255], "AP8=")]
)
async def test_encode(value: Any, expected: str) -> None:
    assert (await run_node("Base64EncodeNode", PATHS, {"s": value}))["data"]["d"] == expected


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("", []),
        ("aGk=", [104, 105]),
        ("aGk", [104, 105]),
        ("_-8", [255, 239]),
        ("a Gk\n", [104, 105]),
        ("aGk=aGk=", [104, 105]),
        ("A", []),
    ],
)
async def test_decode(text: str, bytes_: list[int]) -> None:
    assert (await run_node("Base64DecodeNode", PATHS, {"s": text}))["data"]["d"] == bytes_
    shown = await run_node("Base64DecodeNode", {**PATHS, "stringOutput": True}, {"s": text})
    assert shown["data"]["d"] == bytes(bytes_).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("type", "config", "value", "message"),
    [
        ("Base64EncodeNode", PATHS, 5, "config.source: leads to 5, not to a text or an array of bytes."),
        (
            "Base64EncodeNode",
            PATHS,
            [256],
            "config.source: leads to [256], not to a text or an array of bytes.",
        ),
        ("Base64EncodeNode", PATHS, ["a"], "config.source: leads to ['a'], not to"),
        ("Base64EncodeNode", PATHS, None, "config.source: leads to null, not to"),
        ("Base64EncodeNode", PATHS, [None, True], "config.source: leads to [null, true], not to"),
        (
            "Base64EncodeNode",
            {"source": "data.gone", "destination": "data.d"},
            0,
            "config.source: leads to nothing",
        ),
        ("Base64EncodeNode", {"source": "data.s"}, "", "config.destination: is not set"),
        ("Base64DecodeNode", PATHS, [1], "config.source: leads to [1], not to a text in base64."),
        ("Base64DecodeNode", {"destination": "data.d"}, "", "config.source: is not set"),
        (
            "Base64DecodeNode",
            PATHS,
            "A" * 400_000,
            "config.stringOutput: 300000 bytes are too many for an array",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(
    type: str, config: dict[str, Any], value: Any, message: str
) -> None:
    name, told = await failure(type, config, {"s": value}, bounds=Bounds(10, 10, 10_000_000))
    assert name == "ValidationError"
    assert told.startswith(message)


@given(st.binary(max_size=100), st.sampled_from(["hex", "base64", "base64url", "latin1"]))
def test_what_is_written_is_read(content: bytes, encoding: str) -> None:
    assert FROM_TEXT[encoding](TO_TEXT[encoding](content)) == content
