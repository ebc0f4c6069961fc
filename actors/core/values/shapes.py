"""Types as far as they are looked at: what a body or a query string may be, without what lies within.

A type of `msgspec.inspect` describes all that can be reached from it, and evaluates the annotations of each struct on
the way: 10 ms and more for a body with many kinds of parts, in the event loop. A shape knows one level, and looks for
the next when it is asked. The names and tags of a struct need no annotation at all.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import inspect
from msgspec.structs import fields

from trunkline.actors.core.values.structs import FORM


class Shape(NamedTuple):
    """A type that is no union. `info` describes it without what it holds.

    `struct` is the class of a struct, `inner` the annotation of the items of an array or of the values of an object,
    `keys` that of the keys of an object.
    """

    info: inspect.Type
    struct: Any = None
    inner: Any = Any
    keys: Any = None


_ANYTHING: Final = Shape(inspect.AnyType())


@cache
def shapes_of(annotation: Any) -> tuple[Shape, ...]:
    """The shapes of a type. One that says in words what it is stays whole, since they describe it better."""
    plain, metas = annotation, []
    while get_origin(plain) is Annotated:
        metas += plain.__metadata__
        plain = plain.__origin__
    form = {name: value for meta in metas for name, value in (getattr(meta, "extra", None) or {}).items()}
    origin = get_origin(plain) or plain
    args = get_args(plain)
    inner = args[-1] if args and origin in (list, dict) else Any
    keys = (args[0] if args else str) if origin is dict else None
    if FORM in form:
        text = inspect.type_info(annotation) if origin is str else None
        return (Shape(text or inspect.Metadata(inspect.AnyType(), extra=form), None, inner, keys),)
    if origin in (Union, UnionType):
        parts = [part for part in args if part is not msgspec.UnsetType]
        return tuple(shape for part in parts for shape in shapes_of(part))
    if isinstance(plain, TypeVar):
        return shapes_of(plain.__bound__) if plain.__bound__ is not None else (_ANYTHING,)
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return (Shape(inspect.AnyType(), plain),)
    if origin in (list, dict):
        bare = Annotated[(origin, *metas)] if metas else origin
        return (Shape(_info(bare), None, inner, keys),)
    return (Shape(_info(annotation)),)


def _info(annotation: Any) -> inspect.Type:
    """What msgspec says of a type that has no words for itself."""
    info = inspect.type_info(annotation)
    while isinstance(info, inspect.Metadata):
        info = info.type
    return info


def names_of(struct: Any) -> tuple[str, ...]:
    """The names of the fields of a struct in JSON, without its tag."""
    names: tuple[str, ...] = _plain(struct).__struct_encode_fields__
    return names


def required_of(struct: Any) -> list[str]:
    """The names that an object must have, the tag among them."""
    cls = _plain(struct)
    names, defaults = cls.__struct_encode_fields__, cls.__struct_defaults__
    without = len(names) - len(defaults)
    tag = [cls.__struct_config__.tag_field] if cls.__struct_config__.tag_field else []
    rest = zip(names[without:], defaults, strict=True)
    return [*tag, *names[:without], *(name for name, default in rest if default is msgspec.NODEFAULT)]


def tag_of(struct: Any) -> tuple[str | None, Any]:
    """The name of the field that tells structs of a union apart, and its value for this one."""
    config = _plain(struct).__struct_config__
    return config.tag_field, config.tag


def shapes_of_field(struct: Any, name: str) -> tuple[Shape, ...]:
    """The shapes of a field, by its name in JSON; none if there is no such field."""
    tag_field, tag = tag_of(struct)
    if name == tag_field:
        return (Shape(inspect.LiteralType((tag,))),)
    annotation = _annotations(struct).get(name)
    return () if annotation is None else shapes_of(annotation)


@cache
def _annotations(struct: Any) -> dict[str, Any]:
    return {field.encode_name: field.type for field in fields(struct)}


def _plain(struct: Any) -> Any:
    """The class itself, of one with type arguments."""
    return get_origin(struct) or struct
