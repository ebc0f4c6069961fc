"""Slugs of an experience: short names under which it is reached, and the version that serves each.

A slug is unique in the server, among the slugs and the `endpointSlug` of all applications.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owner import unique_key
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.changes import changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Id, Name, RecordView
from trunkline.actors.platform.applications.messages import Slug
from trunkline.actors.presentation.experience.content import DEVELOP_NAME, check_number, check_version
from trunkline.actors.presentation.experience.kind import SLUG
from trunkline.store import keys


class SlugPost(Body, frozen=True):
    """A new slug. `version` is `develop` if it is left out; with null, no version serves it."""

    slug: Slug
    version: Name | UnsetType | None = UNSET


@changes_of(SlugPost)
class SlugPatch(Body, frozen=True):
    """Changes of a slug; omitted fields stay as they are. Null removes the version."""


class SlugPage(Page, frozen=True):
    """A page of slugs."""

    sort_field: Literal["slug", "id", "creationDate", "lastUpdated"] = "slug"
    filter_field: Literal["slug"] | None = None


class SlugView(RecordView, frozen=True, kw_only=True):
    """A slug."""

    experience_slug_id: Id
    application_id: Id
    slug: str
    version: str | None = None


def _check(change: Change) -> None:
    """Check the version, and that no application has the slug as its `endpointSlug`."""
    owner, new, named = change.owner, change.new, change.named
    if change.old is None:
        raw = Staged(owner).get(keys.COUNTS, keys.total_key(SLUG.name, owner.ref.id))
        check_number(raw, owner.system.limits.experience_slugs_max, "slugs")
        if "version" not in named:
            new["version"] = DEVELOP_NAME
    if "slug" in named:
        holder = Staged(owner).get(keys.UNIQUE, unique_key(APPLICATION, "endpointSlug", new["slug"]))
        if holder is not None:
            raise Invalid(f"slug: {new['slug']} is the endpointSlug of an application; choose another one.")
    if named.get("version") is not None:
        check_version(Staged(owner), owner.ref.id, new["version"])


SLUGS: Final = Resource(
    name="experienceSlug",
    kind=SLUG,
    post=SlugPost,
    patch=SlugPatch,
    page=SlugPage,
    view=SlugView,
    check=_check,
)
