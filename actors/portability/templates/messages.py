"""Application templates: the query strings of their operations, and what these answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.structs import Query, View
from trunkline.actors.core.values.terms import Id, Key, RecordView
from trunkline.actors.platform.jobs.messages import NotifyBody


class TemplatePage(Page, frozen=True):
    """A page of application templates. One has all `keywords`, and is in the category or in one below it."""

    sort_field: Literal["name", "id", "creationDate", "lastUpdated"] = "name"
    filter_field: Literal["name", "authorName"] | None = None
    keywords: Annotated[list[Key], Meta(max_length=100)] | None = None
    category_id: Id | None = None


class TemplateApplication(NotifyBody, frozen=True, kw_only=True):
    """The template that is applied, and who is told of its end if it takes long."""

    template_id: Id


class CategoryChoice(Query, frozen=True):
    """The category to begin with; without it all categories are listed."""

    base_id: Id | None = None


class TemplateView(RecordView, frozen=True, kw_only=True):
    """An application template."""

    template_id: Id
    name: str
    readme: str
    description: str
    author_name: str
    public: bool
    keywords: list[str]
    category_ids: list[Id]
    summary: dict[str, Any]
    author_url: str | None = None
    image_url: str | None = None
    template_url: str | None = None


class CategoryView(View, frozen=True, kw_only=True):
    """A category of application templates."""

    id: Id
    name: str
    resource_types: list[Literal["DeviceRecipe", "CustomNode"]]
    parent_id: Id | None = None
    description: str | None = None


class Categories(View, frozen=True, kw_only=True):
    """Categories, those above before those below."""

    items: list[CategoryView]
    count: int
    total_count: int
    base_id: Id | None = None


class Keywords(View, frozen=True):
    """The keywords of all templates, each once, in the order of the alphabet."""

    keywords: list[str]
