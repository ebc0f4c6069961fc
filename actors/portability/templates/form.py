"""The form of the files of a catalogue of application templates.

A catalogue is a folder with `categories.json`, and for each template `<name>.json` and its readme `<name>.md`. The
resources of a template are those of a bundle (`portability/bundles/portable.py`): `type` is the name of one with a
small first letter, `body` is a body with which the API creates it, and `more` is what that body cannot say. A resource
may have an id; other resources use that id where they need the one of the created record, and the id of the template
where they need the one of the application.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.portable import Portable, ResourceName
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import IsoText, Key, Name
from trunkline.actors.platform.applications.messages import Global
from trunkline.actors.portability.bundles.portable import (
    BY_NAME,
    FORMAT,
    PORTABLE,
    VERSION,
    BundleApplication,
    Line,
    Manifest,
    rows_path,
)
from trunkline.actors.portability.bundles.reader import Memory

TemplateId = Annotated[str, Meta(pattern="^[0-9a-f]{24}$", max_length=24)]
"""An id in a file: in lower case, so that equal ids are equal texts."""
_Text = Annotated[str, Meta(max_length=1024)]
_ID: Final = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{24}(?![0-9A-Fa-f])")
_Row = dict[str, str | int | float | bool | None]


class Category(Body, frozen=True):
    """A category of templates. `parentId` is the category above it, which comes before it in the file."""

    id: TemplateId
    name: Name
    parent_id: TemplateId | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=32767)] | UnsetType = UNSET
    resource_types: tuple[Literal["DeviceRecipe", "CustomNode"], ...] = ()


class _Resource(Body, frozen=True, kw_only=True, tag_field="type"):
    """A resource to create. `id` stands for the id of the created record in other resources."""

    id: TemplateId | UnsetType = UNSET


class _Table(_Resource, frozen=True, kw_only=True):
    """A data table with its first rows."""

    rows: Annotated[tuple[_Row, ...], Meta(max_length=1000)] = ()


def _type_of(portable: Portable) -> str:
    return portable.name[0].lower() + portable.name[1:]


_LEFT_OUT: Final = frozenset({"Global", "DataTableRow", "ExperienceVersion", "File", "PrivateFile"})
"""What a template says in another way, and what would need more than a JSON file."""
_TABLE: Final = "DataTable"


def _structs() -> dict[ResourceName, type[_Resource]]:
    """By name: the struct of each resource that a template may have."""
    structs: dict[ResourceName, type[_Resource]] = {}
    for portable in PORTABLE:
        if portable.name in _LEFT_OUT:
            continue
        more: Any = portable.more
        is_optional = all(not field.required for field in msgspec.structs.fields(more))
        structs[portable.name] = msgspec.defstruct(  # type: ignore[assignment]
            f"{portable.name}Resource",
            [("body", portable.body), ("more", more, more()) if is_optional else ("more", more)],
            bases=(_Table if portable.name == _TABLE else _Resource,),
            module=__name__,
            frozen=True,
            kw_only=True,
            tag=_type_of(portable),
        )
    return structs


_STRUCTS: Final = _structs()
_PARTS: Final = frozenset({"ExperienceDevelopConfig", "ExperienceFlowVersion", "FlowVersion"})
_NAME_OF: Final = {struct: name for name, struct in _STRUCTS.items()}
COUNTED: Final = {
    f"{_type_of(BY_NAME[name])}Count": struct for name, struct in _STRUCTS.items() if name not in _PARTS
}
"""The fields of the summary of a template, each with the resources that it counts."""

if TYPE_CHECKING:
    Resource = _Resource
else:
    Resource = Union[tuple(_STRUCTS.values())]  # noqa: UP007 - its members are not known to the parser


class Template(Body, frozen=True):
    """An application template: what a catalogue shows of it, and what it creates."""

    id: TemplateId
    name: Name
    creation_date: IsoText
    last_updated: IsoText
    description: _Text = ""
    author_name: Annotated[str, Meta(max_length=255)] = ""
    author_url: _Text | UnsetType = UNSET
    image_url: _Text | UnsetType = UNSET
    template_url: _Text | UnsetType = UNSET
    public: bool = True
    keywords: Annotated[tuple[Key, ...], Meta(max_length=100)] = ()
    category_ids: Annotated[tuple[TemplateId, ...], Meta(max_length=100)] = ()
    globals: Annotated[tuple[Global, ...], Meta(max_length=100)] = ()
    resources: Annotated[tuple[Resource, ...], Meta(max_length=1000)] = ()


def reference_problem(template: Template) -> str | None:
    """The first problem with the ids of resources: one that is there twice, or that no resource has."""
    known: set[str] = {template.id}
    for position, resource in enumerate(template.resources):
        if resource.id is not UNSET:
            if resource.id in known:
                return f"resources[{position}] has the id {resource.id}, which another one has already"
            known.add(resource.id)
    for position, resource in enumerate(template.resources):
        for text in _texts(msgspec.to_builtins(resource)):
            for found in _ID.findall(text):
                if found.lower() not in known:
                    return f"resources[{position}] names {found}, which no resource has"
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


# As a bundle.


def bundle_of(template: Template, *, without: AbstractSet[str] = frozenset()) -> Memory:
    """The bundle of what a template creates, without the globals of these keys."""
    globals = [each for each in template.globals if each.key not in without]
    entries: dict[str, list[Line]] = {
        BY_NAME["Global"].path: [Line(body=msgspec.to_builtins(each)) for each in globals]
    }
    counts: dict[Any, int] = {"Global": len(globals)}
    for position, resource in enumerate(template.resources):
        name = _NAME_OF[type(resource)]
        portable = BY_NAME[name]
        id = resource.id
        if id is UNSET:
            id = hashlib.sha256(f"{template.id} {position}".encode()).hexdigest()[:24]
        parts = msgspec.to_builtins(resource)
        line = Line(id=id, body=parts["body"], more=parts.get("more", {}))
        entries.setdefault(portable.path, []).append(line)
        counts[name] = counts.get(name, 0) + 1
        rows = parts.get("rows", ())
        if rows:
            entries[rows_path(id)] = [Line(body=row) for row in rows]
            counts["DataTableRow"] = counts.get("DataTableRow", 0) + len(rows)
    manifest = Manifest(
        format=FORMAT,
        version=VERSION,
        exported_at=template.last_updated,
        application_id=template.id,
        application=BundleApplication(name=template.name),
        resources=counts,
    )
    return Memory(manifest, entries)
