"""Declared attributes: numbers that are never used twice, types that stay, and sentences that name the place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.fleet.devices.record.attributes import (
    ATTRIBUTES_MAX,
    FLOW_VERSION,
    META,
    Attributes,
    shown_attribute,
)
from trunkline.actors.fleet.devices.record.messages import AttributePatch
from trunkline.actors.fleet.devices.record.terms import Attribute

KINDS = ("number", "string", "boolean", "gps", "blob")


def attribute(name: str, kind: str = "number", **more: Any) -> Attribute:
    return msgspec.convert({"name": name, "dataType": kind, **more}, Attribute)


def declared(**kinds: str) -> Attributes:
    return Attributes([], 0).replaced([attribute(name, kind) for name, kind in kinds.items()])


def patch(**changes: Any) -> AttributePatch:
    return msgspec.convert(changes, AttributePatch)


def test_a_point_holds_numbers_for_names() -> None:
    attributes = declared(temp="number", label="string")
    assert attributes.point({"label": 5, "temp": "5"}, 100) == {0: 5, 1: "5"}


def test_an_undeclared_attribute_is_named_with_those_that_are() -> None:
    with pytest.raises(
        Invalid, match=r"^data\.tmp: the device declares no such attribute \(declared: temp\)"
    ):
        declared(temp="number").point({"temp": 1, "tmp": 1}, 100)
    with pytest.raises(Invalid, match=r"declared: none"):
        declared().point({"temp": 1}, 100)


def test_a_report_without_values_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^data: is empty"):
        declared(temp="number").point({}, 100)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("x" * 100, True),
        ("x" * 101, False),
        ("é" * 50, True),
        ("é" * 51, False),
        ("🛰" * 25, True),
        ("🛰" * 26, False),
    ],
)
def test_texts_are_bounded_in_bytes(text: str, fits: bool) -> None:
    attributes = declared(label="string")
    if fits:
        assert attributes.point({"label": text}, 100) == {0: text}
    else:
        with pytest.raises(
            Invalid, match=r"^data\.label: the text has 10\d bytes; a value takes at most 100\."
        ):
            attributes.point({"label": text}, 100)


def test_an_entry_shows_what_is_declared_now() -> None:
    attributes = declared(temp="number", label="string").removed("temp")
    point = {0: 21, 1: "x", META: {"by": 1}, FLOW_VERSION: "v1"}
    assert attributes.entry(1000, point) == {
        "time": "1970-01-01T00:00:01.000Z",
        "data": {"label": "x"},
        "meta": {"by": 1},
        "flowVersion": "v1",
    }


def test_an_attribute_that_is_declared_anew_gets_another_number() -> None:
    attributes = declared(temp="number")
    again = attributes.removed("temp").added(attribute("temp"))
    assert (attributes.number("temp"), again.number("temp")) == (0, 1)
    assert again.entry(0, {0: 21})["data"] == {}


def test_a_renamed_attribute_keeps_its_values() -> None:
    attributes, name = declared(temp="number").patched("temp", patch(name="celsius"))
    assert name == "celsius"
    assert attributes.entry(0, {0: 21})["data"] == {"celsius": 21}
    with pytest.raises(NotFound):
        attributes.find("temp")


def test_a_name_is_declared_once() -> None:
    attributes = declared(temp="number", label="string")
    with pytest.raises(Invalid, match=r"^name: the device already declares an attribute temp\."):
        attributes.added(attribute("temp"))
    with pytest.raises(Invalid, match=r"^name: the device already declares an attribute label\."):
        attributes.patched("temp", patch(name="label"))
    with pytest.raises(Invalid, match=r"^attributes\[1\]\.name: temp appears twice in the list\."):
        attributes.replaced([attribute("temp"), attribute("temp")])
    assert attributes.patched("temp", patch(name="temp"))[1] == "temp"


def test_the_type_of_a_declared_attribute_stays() -> None:
    attributes = declared(temp="number")
    with pytest.raises(
        Invalid, match=r"^attributes\[1\]\.dataType: temp is declared as number and stays so;"
    ):
        attributes.replaced([attribute("label", "string"), attribute("temp", "string")])
    assert attributes.removed("temp").added(attribute("temp", "string")).find("temp")["dataType"] == "string"


def test_a_device_has_at_most_256_attributes() -> None:
    full = declared(**{f"a{number}": "number" for number in range(ATTRIBUTES_MAX)})
    with pytest.raises(Invalid, match="256"):
        full.added(attribute("one_more"))
    assert len(full.removed("a0").added(attribute("one_more")).docs) == 256


def test_what_stands_beside_a_type_is_kept_and_shown() -> None:
    attributes = Attributes([], 0).added(attribute("pic", "blob", contentType="image/png", description="x"))
    changed, _ = attributes.patched("pic", patch(attributeTags={"floor": "1"}, description="y"))
    assert shown_attribute(changed.find("pic")) == {
        "name": "pic",
        "dataType": "blob",
        "contentType": "image/png",
        "description": "y",
        "attributeTags": {"floor": "1"},
    }


class Declarations(RuleBasedStateMachine):
    """Whatever is declared, renamed, replaced and removed: a number means one declaration for ever."""

    names = st.sampled_from("abcd")
    kinds = st.sampled_from(KINDS)

    def __init__(self) -> None:
        super().__init__()
        self.attributes = Attributes([], 0)
        self.kind_of: dict[int, str] = {}
        self.gone: set[int] = set()
        self.living: dict[str, int] = {}

    def settle(self, after: Attributes, living: dict[str, int]) -> None:
        self.gone |= set(self.living.values()) - set(living.values())
        self.attributes, self.living = after, living

    @rule(name=names, kind=kinds)
    def add(self, name: str, kind: str) -> None:
        if name in self.living:
            with pytest.raises(Invalid):
                self.attributes.added(attribute(name, kind))
            return
        after = self.attributes.added(attribute(name, kind))
        number = after.number(name)
        assert number is not None
        assert number not in self.kind_of, "the number was used before"
        self.kind_of[number] = kind
        self.settle(after, {**self.living, name: number})

    @rule(name=names)
    def remove(self, name: str) -> None:
        if name not in self.living:
            with pytest.raises(NotFound):
                self.attributes.removed(name)
            return
        living = {other: number for other, number in self.living.items() if other != name}
        self.settle(self.attributes.removed(name), living)

    @rule(name=names, to=names)
    def rename(self, name: str, to: str) -> None:
        if name not in self.living or (to in self.living and to != name):
            with pytest.raises((Invalid, NotFound)):
                self.attributes.patched(name, patch(name=to))
            return
        after, _ = self.attributes.patched(name, patch(name=to))
        living = {to if other == name else other: number for other, number in self.living.items()}
        self.settle(after, living)

    @rule(kinds=st.dictionaries(names, kinds))
    def replace(self, kinds: dict[str, str]) -> None:
        wanted = [attribute(name, kind) for name, kind in kinds.items()]
        if any(
            name in self.living and self.kind_of[self.living[name]] != kind for name, kind in kinds.items()
        ):
            with pytest.raises(Invalid):
                self.attributes.replaced(wanted)
            return
        after = self.attributes.replaced(wanted)
        living = {}
        for name, kind in kinds.items():
            number = after.number(name)
            assert number is not None
            assert number == self.living.get(name, number), "a declared attribute keeps its number"
            assert name in self.living or number not in self.kind_of, "the number was used before"
            self.kind_of[number] = kind
            living[name] = number
        self.settle(after, living)

    @invariant()
    def it_says_what_was_declared(self) -> None:
        attributes = self.attributes
        assert {name: attributes.number(name) for name in self.living} == self.living
        assert attributes.names == {number: name for name, number in self.living.items()}
        assert not self.gone & attributes.names.keys(), "what was taken away never comes back"
        for name, number in self.living.items():
            assert attributes.find(name)["dataType"] == self.kind_of[number]


TestDeclarations = pytest.mark.slow(Declarations.TestCase)
