"""Bodies of changes follow from those of creations: what may be changed, and what null removes."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

import trunkline.actors
from trunkline.actors.core.values.changes import Fixed, Removable, changes_of
from trunkline.actors.core.values.structs import Body

_Short = Annotated[str, Meta(max_length=4)]


class KeyPost(Body, frozen=True):
    """A body in another body."""

    id: _Short
    secret: _Short


@changes_of(KeyPost)
class KeyPatch(Body, frozen=True):
    """The changes of it."""


class DoorPost(Body, frozen=True):
    """A new door."""

    name: _Short
    kind: Fixed[_Short]
    note: Removable[_Short] | UnsetType = UNSET
    is_open: bool = False
    above: _Short | UnsetType | None = UNSET
    door_url: _Short | UnsetType = msgspec.field(default=UNSET, name="doorURL")
    key: KeyPost | UnsetType = UNSET
    data: Any = UNSET


@changes_of(DoorPost)
class DoorPatch(Body, frozen=True):
    """Changes of a door."""

    is_open: bool | UnsetType = UNSET
    only_here: int | UnsetType = UNSET


DECODER = msgspec.json.Decoder(DoorPatch)


def refusal(text: bytes) -> str:
    """What is said of a body that is no change of a door."""
    with pytest.raises(msgspec.ValidationError) as caught:
        DECODER.decode(text)
    return str(caught.value)


def test_every_field_may_be_left_out_and_none_has_a_default() -> None:
    patch = DECODER.decode(b"{}")
    assert patch == DoorPatch()
    assert msgspec.to_builtins(patch) == {}


def test_a_change_has_the_fields_under_the_names_of_the_creation() -> None:
    text = b'{"name":"a","isOpen":true,"doorURL":"b","data":null,"onlyHere":1}'
    assert msgspec.to_builtins(DECODER.decode(text)) == msgspec.json.decode(text)
    assert DECODER.decode(text).is_open is True


def test_a_fixed_field_is_unknown_to_a_change() -> None:
    assert refusal(b'{"kind":"a"}') == "Object contains unknown field `kind`"


def test_null_is_taken_where_the_creation_takes_it_or_it_removes_a_field() -> None:
    text = b'{"note":null,"above":null}'
    assert msgspec.to_builtins(DECODER.decode(text)) == {"note": None, "above": None}
    assert refusal(b'{"name":null}') == "Expected `str`, got `null` - at `$.name`"
    with pytest.raises(msgspec.ValidationError, match="note"):
        msgspec.json.decode(b'{"name":"a","kind":"b","note":null}', type=DoorPost)


@pytest.mark.parametrize("field", ["name", "note", "above", "doorURL"])
def test_the_bounds_of_the_creation_hold_for_a_change(field: str) -> None:
    assert refusal(msgspec.json.encode({field: "abcde"})) == f"Expected `str` of length <= 4 - at `$.{field}`"


def test_a_body_in_a_body_is_changed_in_part() -> None:
    text = b'{"key":{"secret":"a"}}'
    assert msgspec.to_builtins(DECODER.decode(text)) == {"key": {"secret": "a"}}


def test_a_repeated_field_must_have_the_type_that_follows() -> None:
    with pytest.raises(TypeError, match=r"Wrong\.note has another type than in DoorPost"):

        @changes_of(DoorPost)
        class Wrong(Body, frozen=True):
            note: _Short | UnsetType = UNSET


UNLIKE = {
    "EventPatch": "its data belongs to the update, and an update has no message",
    "FilePatch": "all its fields are read by name",
    "FlowPatch": "it shares the fields of a definition with imports as well",
    "FlowVersionPatch": "only what is said about a version changes",
}
"""The bodies of changes that do not follow from one of a creation, and why."""


def _bodies() -> dict[str, type]:
    """Every body of the actors by its name."""
    for each in pkgutil.walk_packages(trunkline.actors.__path__, "trunkline.actors."):
        importlib.import_module(each.name)
    found: dict[str, type] = {}
    pending: list[type] = [Body]
    while pending:
        subclasses: list[type] = pending.pop().__subclasses__()
        found |= {each.__name__: each for each in subclasses if each.__module__.startswith("trunkline.")}
        pending += subclasses
    return found


def test_no_body_of_changes_repeats_a_creation() -> None:
    bodies = _bodies()
    pairs = {name for name in bodies if name.endswith("Patch") and f"{name[:-5]}Post" in bodies}
    by_hand = {name for name in pairs if bodies[name].__base__.__name__ != name}  # type: ignore[union-attr]
    assert by_hand == set(UNLIKE)
    assert len(pairs - by_hand) > 30
