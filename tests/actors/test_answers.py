"""What actors are asked and what they answer is plain data, which can be sent to another process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.portability.templates import form
from trunkline.http import routes

assert routes.TABLE  # all bodies of calls are known then
HANDLERS = {
    f"{actor.__name__}.{name}": handler
    for actor in ACTORS
    for name, handler in inspect.getmembers(actor, inspect.isfunction)
    if name.startswith("on_")
}


def is_plain(hint: Any) -> bool:
    """Whether values of this type are structs, documents, simple values, or lists and maps of these."""
    if hint is Any:
        return False
    if hint == Doc:
        return True
    if get_origin(hint) in (UnionType, list, tuple, dict):
        return all(is_plain(part) for part in get_args(hint))
    if hint in (NoneType, bool, int, float, str, bytes):
        return True
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


@pytest.mark.parametrize("name", HANDLERS)
def test_every_answer_is_plain_data(name: str) -> None:
    hint = get_type_hints(HANDLERS[name])["return"]
    assert is_plain(NoneType if hint is None else hint), hint


def structs_below(base: type[Any]) -> Iterator[type[Any]]:
    for struct in base.__subclasses__():
        if struct.__module__.startswith("trunkline."):
            yield struct
        yield from structs_below(struct)


def is_found(struct: type[Any]) -> bool:
    """Whether its name in its module leads to it, as for pickle."""
    found: Any = sys.modules[struct.__module__]
    for name in struct.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is struct


def test_every_struct_is_found_by_its_name() -> None:
    """But those of templates, which are in no message, and bases that were replaced by what is derived from them."""
    structs = {each for each in structs_below(msgspec.Struct) if each.__module__ != form.__name__}
    assert len(structs) > 1000
    lost = {each for each in structs if not is_found(each)}
    replaced = {
        each for each in lost if any(is_found(made) for made in each.__subclasses__() if names(made, each))
    }
    assert not lost - replaced


def names(made: type[Any], base: type[Any]) -> bool:
    """Whether both have one name."""
    return (made.__module__, made.__qualname__) == (base.__module__, base.__qualname__)


@pytest.mark.parametrize("name", HANDLERS)
def test_every_handler_takes_one_message(name: str) -> None:
    _, message, *options = inspect.signature(HANDLERS[name]).parameters.values()
    assert all(option.default is not option.empty for option in options)
    assert issubclass(get_type_hints(HANDLERS[name])[message.name], msgspec.Struct)
