"""Bodies of changes, made from the bodies of what is created.

Owns what a field says of changes beside its type: nothing if it may be changed, `Fixed` if it is given at the creation
only, `Removable` if null takes it away. Does not own what a change does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.actors.core.values.structs import Body

_Value = TypeVar("_Value")
_Change = TypeVar("_Change", bound=Body)


class _Rule(Enum):
    FIXED = "fixed"
    REMOVABLE = "removable"


Fixed = Annotated[_Value, _Rule.FIXED]
"""The type of a field that a change does not take."""
Removable = Annotated[_Value, _Rule.REMOVABLE]
"""The type of a field that a change removes with null, which the creation does not take."""

_CHANGES: Final[dict[Any, Any]] = {}
"""The body of changes for each body of a creation. A field with the one becomes a field with the other."""


def changes_of(created: type[Body]) -> Callable[[type[_Change]], type[_Change]]:
    """A decorator: the class gets the fields of `created` that may be changed, each of which may be left out.

    The class itself has the fields that only a change has. A type checker sees only these, so a field that code reads
    or sets by its name is repeated there; it must have the type that it would get.
    """

    def derive(declared: type[_Change]) -> type[_Change]:
        hints = get_type_hints(created, include_extras=True)
        names = dict(zip(created.__struct_fields__, created.__struct_encode_fields__, strict=True))
        types = {field: _changed(hints[field]) for field in names}
        repeated = types.keys() & declared.__struct_fields__
        given = get_type_hints(declared, include_extras=True) if repeated else {}
        for field in repeated:
            if _plain(given[field]) != _plain(types[field]):
                raise TypeError(f"{declared.__name__}.{field} has another type than in {created.__name__}")
        fields = [
            (field, type, msgspec.field(default=UNSET, name=names[field]))
            for field, type in types.items()
            if type is not None and field not in repeated
        ]
        made = msgspec.defstruct(
            declared.__name__,
            fields,
            bases=(declared,),
            module=declared.__module__,
            namespace={"__doc__": declared.__doc__},
            frozen=True,
            kw_only=True,
        )
        _CHANGES[created] = made
        return cast("type[_Change]", made)

    return derive


def _rule(members: tuple[Any, ...]) -> _Rule | None:
    """The rule of a field, which is at its type or at a member of it."""
    for member in members:
        if get_origin(member) is Annotated and isinstance(member.__metadata__[-1], _Rule):
            return member.__metadata__[-1]
    return None


def _changed(hint: Any) -> Any:
    """The type of a field of a change, None for a field that is fixed."""
    members = _members(hint)
    rule = _rule(members)
    if rule is _Rule.FIXED:
        return None
    if not _CHANGES.keys().isdisjoint(members):
        hint = reduce(or_, (_CHANGES.get(each, each) for each in members))
    if hint is not Any and UnsetType not in members:
        hint = hint | UnsetType
    return hint if rule is None else hint | None


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _plain(hint: Any) -> set[Any]:
    """The members of a type, without its rule."""
    return {_without_rule(each) if _rule((each,)) else each for each in _members(hint)}


def _without_rule(hint: Any) -> Any:
    rest = hint.__metadata__[:-1]
    return Annotated[(hint.__origin__, *rest)] if rest else hint.__origin__
