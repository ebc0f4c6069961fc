"""The form of the files of a catalogue of application templates.

A catalogue is a folder with `categories.json`, and for each template `<name>.json` and its readme `<name>.md`. The
resources of a template are the bodies with which the API creates them, in the order in which they are to be created.
A resource may have an id; later bodies use that id where they need the one of the created record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.applications.messages import Global
from trunkline.actors.dashboards.messages import DashboardPost
from trunkline.actors.devices.messages import DevicePost
from trunkline.actors.plain.device_recipes import RecipePost
from trunkline.actors.tables.messages import TablePost
from trunkline.actors.values.structs import Body
from trunkline.actors.values.terms import IsoText, Key, Name
from trunkline.actors.webhooks.resource import WebhookPost

TemplateId = Annotated[str, Meta(pattern="^[0-9a-f]{24}$", max_length=24)]
"""An id in a file: in lower case, so that equal ids are equal texts."""
_Text = Annotated[str, Meta(max_length=1024)]
_ID: Final = re.compile(r"[0-9a-fA-F]{24}")
_Row = dict[str, str | int | float | bool | None]


class Category(Body, frozen=True):
    """A category of templates. `parentId` is the category above it, which comes before it in the file."""

    id: TemplateId
    name: Name
    parent_id: TemplateId | UnsetType = UNSET
    description: Annotated[str, Meta(max_length=32767)] | UnsetType = UNSET
    resource_types: tuple[Literal["DeviceRecipe", "CustomNode"], ...] = ()


class _Resource(Body, frozen=True, kw_only=True, tag_field="type"):
    """A record to create. `id` stands for the id of the created record in later bodies."""

    id: TemplateId | UnsetType = UNSET


class DeviceRecipeResource(_Resource, frozen=True, kw_only=True, tag="deviceRecipe"):
    """A device recipe."""

    body: RecipePost


class DeviceResource(_Resource, frozen=True, kw_only=True, tag="device"):
    """A device."""

    body: DevicePost


class DataTableResource(_Resource, frozen=True, kw_only=True, tag="dataTable"):
    """A data table with its first rows."""

    body: TablePost
    rows: Annotated[tuple[_Row, ...], Meta(max_length=1000)] = ()


class DashboardResource(_Resource, frozen=True, kw_only=True, tag="dashboard"):
    """A dashboard."""

    body: DashboardPost


class WebhookResource(_Resource, frozen=True, kw_only=True, tag="webhook"):
    """A webhook."""

    body: WebhookPost


Resource = DeviceRecipeResource | DeviceResource | DataTableResource | DashboardResource | WebhookResource

COUNTED: Final = {
    "deviceRecipeCount": DeviceRecipeResource,
    "deviceCount": DeviceResource,
    "dataTableCount": DataTableResource,
    "dashboardCount": DashboardResource,
    "webhookCount": WebhookResource,
}
"""The fields of the summary of a template, each with the resources that it counts."""


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


def reference_problem(resources: Sequence[Resource]) -> str | None:
    """The first problem with the ids of resources: one that is there twice, or is used before its resource."""
    known: set[str] = set()
    for position, resource in enumerate(resources):
        for text in _texts(msgspec.to_builtins(resource.body)):
            if _is_id(text) and text not in known:
                return f"resources[{position}] names {text}, which no resource before it has"
        if resource.id is not UNSET:
            if resource.id in known:
                return f"resources[{position}] has the id {resource.id}, which another one has already"
            known.add(resource.id)
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


def _is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None
