"""What actors answer is plain data: it could be sent to another process, as messages can."""

from __future__ import annotations

import inspect
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.records.kind import Doc

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


@pytest.mark.parametrize("name", HANDLERS)
def test_every_handler_takes_one_message(name: str) -> None:
    _, message, *options = inspect.signature(HANDLERS[name]).parameters.values()
    assert all(option.default is not option.empty for option in options)
    assert issubclass(get_type_hints(HANDLERS[name])[message.name], msgspec.Struct)
