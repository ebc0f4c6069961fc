"""docs/reference/device-link.md: its examples are frames of its CDDL, and frames of this server."""

from __future__ import annotations

import json
import re
from typing import Any

import cbor2
import msgspec
import numpy as np
import pytest

from tests.http.link.link_document import DOCUMENT, RULES, Example, cddl, check_frame, examples
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand
from trunkline.http.link import session
from trunkline.http.link.frames import SESSION_MAX, Hello, Received, States, decode_frame
from trunkline.http.link.outgoing import CBOR, JSON

_ARRAY = re.compile(r"(uint32|float64) (\[.*?\])")


def plain(value: Any) -> Any:
    """A decoded frame with typed arrays as `type [values]`."""
    if isinstance(value, cbor2.CBORTag):
        name, letter = {70: ("uint32", "<u4"), 86: ("float64", "<f8")}[value.tag]
        return f"{name} {np.frombuffer(value.value, letter).tolist()}"
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def test_there_is_an_example_of_each_frame() -> None:
    kinds = {(example.sender, example.value[0]) for example in examples()}
    assert kinds == {(sender, kind) for sender, rules in RULES.items() for kind in range(len(rules))}


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_an_example_is_what_the_line_above_says(example: Example) -> None:
    shown = json.loads(_ARRAY.sub(lambda found: json.dumps(found[0]), example.shown))
    assert plain(example.value) == shown


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_an_example_is_a_frame_of_the_cddl(example: Example) -> None:
    check_frame(example.sender, example.frame)


@pytest.mark.parametrize(
    "wrong",
    [
        ("client", [0, {"session": "7"}]),
        ("client", [1, -1, None, {"a": 1}]),
        ("client", [1, 2, None, {}]),
        ("client", [1, 2, -5, {"a": 1}]),
        ("client", [1, 2, None, {"a": None}]),
        ("client", [1, 2, None, {"a": 1}, {"device": "x"}]),
        ("client", [2, 1, ["a"], []]),
        ("client", [4, "7"]),
        ("server", [0, {"n": 1}]),
        ("server", [1, "7"]),
        ("server", [2, 1, "Validation"]),
        ("server", [3, "1", "go", None, 5]),
    ],
)
def test_the_cddl_refuses_other_frames(wrong: tuple[str, Any]) -> None:
    sender, frame = wrong
    with pytest.raises(Exception, match="error validating"):
        check_frame(sender, cbor2.dumps(frame))


def test_the_cddl_takes_each_session_that_the_server_takes() -> None:
    for number in (0, SESSION_MAX):
        frame = cbor2.dumps([0, {"session": number}])
        check_frame("client", frame)
        assert decode_frame(frame, text=False) == Hello(number, None)


def test_the_server_reads_the_examples() -> None:
    for example in examples():
        if example.sender == "client":
            frame = decode_frame(example.frame, text=False)
            assert type(frame) is {0: Hello, 4: Received}.get(example.value[0], States)


def test_the_server_writes_the_examples() -> None:
    written = [
        CBOR.stored(9, backlog=False),
        CBOR.stored(10, backlog=True),
        CBOR.refusal(11, "TooManyRequests", "Try again in 0.5 seconds.", "send_state", 500),
        CBOR.command(LinkCommand(41, "setTarget", {"value": 27}, 1_700_000_003_000, None)),
    ]
    assert written == [each.frame for each in examples() if each.sender == "server"][1:]


def test_both_forms_say_the_same() -> None:
    for form in (CBOR, JSON):
        read = json.loads if form.text else cbor2.loads
        assert read(form.stored(300, backlog=False)) == [1, 300]
        assert read(form.stored(300, backlog=True)) == [1, 300, True]
        assert read(form.refusal(1, "Validation", "no")) == [2, 1, "Validation", "no"]
        assert read(form.command(LinkCommand(1, "go", msgspec.UNSET, 5, b"a"))) == [3, 1, "go", None, 5, "61"]


def test_every_close_code_is_in_the_table() -> None:
    told = {int(code) for code in re.findall(r"\b4\d{3}\b", DOCUMENT.read_text(encoding="utf-8"))}
    codes = {value for name, value in vars(session).items() if name.isupper() and type(value) is int}
    assert {code for code in codes if code >= 4000} == told


def test_the_cddl_is_not_empty() -> None:
    assert all(f"{rule} " in cddl() for rules in RULES.values() for rule in rules)
