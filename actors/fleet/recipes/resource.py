"""Device recipes: named templates for new devices. Owns the record only; `actors/fleet/recipes/` creates devices."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.read_context import Ids
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.values.changes import Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, Query
from trunkline.actors.core.values.terms import Description, DeviceClass, Id, Name, RecordView, Tags
from trunkline.actors.fleet.devices.record.reads import attributes_as_object, tags_as_object
from trunkline.actors.fleet.devices.record.terms import Attributes, ExpectedInterval

_Interval = Annotated[int, Meta(ge=5, le=3600)]


class RecipePost(Body, frozen=True):
    """A new device recipe."""

    name: Name
    device_name: Name | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    device_description: Description | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    attributes: Attributes | UnsetType = UNSET
    device_class: DeviceClass = "standalone"
    gateway_id: Removable[Id] | UnsetType = UNSET
    parent_id: Id | UnsetType | None = UNSET
    system_interval: _Interval | UnsetType = UNSET
    keep_duplicates: bool | UnsetType = UNSET
    expected_interval_seconds: Removable[ExpectedInterval] | UnsetType = UNSET


@changes_of(RecipePost)
class RecipePatch(Body, frozen=True):
    """Changes of a device recipe; omitted fields stay as they are. `tags` and `attributes` replace the whole list."""


class RecipeShape(Query, frozen=True):
    """Whether tags and attributes are shown as objects instead of arrays."""

    tags_as_object: bool = False
    attributes_as_object: bool = False


class RecipePage(Page, frozen=True):
    """A page of device recipes."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None
    tags_as_object: bool = False
    attributes_as_object: bool = False


class RecipeView(RecordView, frozen=True, kw_only=True):
    """A device recipe."""

    device_recipe_id: Id
    application_id: Id
    name: str
    device_class: DeviceClass
    tags: list[Any] | dict[str, Any]
    attributes: list[Any] | dict[str, Any]
    device_name: str | None = None
    description: str | None = None
    device_description: str | None = None
    gateway_id: Id | None = None
    parent_id: Id | None = None
    system_interval: int | None = None
    keep_duplicates: bool | None = None
    expected_interval_seconds: int | None = None


def _check(change: Change) -> None:
    """Check that each attribute is declared once; store ids in lower case. The other rules of devices do not apply."""
    new = change.new
    new.setdefault("tags", [])
    names = [attribute["name"] for attribute in new.setdefault("attributes", [])]
    for name in names:
        if names.count(name) > 1:
            raise Invalid(f"attributes: {name} is declared twice; give each attribute a name of its own.")
    for field in ("gatewayId", "parentId"):
        if field in new:
            new[field] = new[field].lower()


def _shaped(_ids: Ids, doc: Doc, query: RecipeShape | RecipePage) -> Doc:
    """Return tags and attributes as objects if the query asks for it."""
    shown: Doc = {}
    if query.tags_as_object:
        shown["tags"] = tags_as_object(doc["tags"])
    if query.attributes_as_object:
        shown["attributes"] = attributes_as_object(doc["attributes"])
    return shown


RECIPES: Final = Resource(
    name="deviceRecipe",
    kind=Kind(
        name="deviceRecipe", noun="device recipe", counted_as="deviceRecipeCount", audited_as="DeviceRecipe"
    ),
    post=RecipePost,
    patch=RecipePatch,
    page=RecipePage,
    view=RecipeView,
    choice=RecipeShape,
    check=_check,
    derive=_shaped,
)
