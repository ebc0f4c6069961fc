"""Versions of an experience: `develop`, which is edited, and named ones with copies of its endpoints and views.

A named version keeps its content: only its settings change, or all of its content at once, for that of another version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.page import Match, Page, all_of
from trunkline.actors.core.records.read_context import ReadContext
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.records.revision import Found
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.global_values import check_global
from trunkline.actors.core.values.names import check_addressable
from trunkline.actors.core.values.structs import FORM, Body, View
from trunkline.actors.core.values.terms import Description, Id, Ids, Key, Name, RecordView
from trunkline.actors.presentation.experience.content import (
    DEVELOP_NAME,
    check_address,
    check_number,
    check_reply,
    erase_copies,
    find_version,
    has_page,
    looks_like_id,
    replace_content,
    version_of_name,
    write_copies,
)
from trunkline.actors.presentation.experience.kind import DOMAIN, SLUG, VERSION
from trunkline.actors.presentation.experience.replies import FRAMING_HEADERS
from trunkline.actors.presentation.experience.terms import HEADER_NAME, REPLIES, By, Reply
from trunkline.actors.workflows.flows.kind import RESERVED
from trunkline.store import keys

_SETTINGS: Final = (
    "description",
    "endpointDefaultCors",
    "allowedCorsOrigins",
    "globals",
    "notFoundReply",
    "unauthorizedReply",
    "responseHeaders",
)
"""What a new version takes from `develop` unless its body says otherwise."""

_ORIGIN: Final = re.compile(r"https?://[^/?#@\s]+")
_Origins = Annotated[list[Annotated[str, Meta(min_length=8, max_length=270)]], Meta(max_length=100)]
_Headers = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=255)],
        Annotated[str, Meta(min_length=1, max_length=1024)],
    ],
    Meta(max_length=10, extra={FORM: "at most 10 headers, each a name and a text"}),
]


class VersionGlobal(Body, frozen=True):
    """A named JSON text that the workflows of the version can read."""

    key: Key
    json: Annotated[str, Meta(min_length=1, max_length=32767)]
    description: Annotated[str, Meta(max_length=1024)] | UnsetType = UNSET


_Globals = Annotated[list[VersionGlobal], Meta(max_length=100)]


class VersionPost(Body, frozen=True):
    """A new version with copies of the endpoints and views of `develop`. Settings that are left out are its, too."""

    version: Fixed[Name]
    description: Description | UnsetType = UNSET
    domain_ids: Fixed[Ids] | UnsetType = UNSET
    slug_ids: Fixed[Ids] | UnsetType = UNSET
    endpoint_default_cors: bool | UnsetType = UNSET
    globals: _Globals | UnsetType = UNSET
    not_found_reply: Reply | UnsetType | None = UNSET
    unauthorized_reply: Reply | UnsetType | None = UNSET
    allowed_cors_origins: _Origins | UnsetType = UNSET
    response_headers: _Headers | UnsetType = UNSET


@changes_of(VersionPost)
class VersionPatch(Body, frozen=True):
    """Changes of a version; omitted fields stay as they are. Lists and maps are replaced, null removes a reply.

    `sourceVersionIdOrName` replaces all endpoints and views by those of another version; settings stay.
    """

    not_found_reply: Reply | UnsetType | None = UNSET
    source_version_id_or_name: Name | UnsetType = UNSET


class VersionPage(Page, frozen=True):
    """A page of versions, `develop` among them."""

    sort_field: Literal["version", "id", "creationDate", "lastUpdated"] = "version"
    filter_field: Literal["version"] | None = None


class AttachedDomain(View, frozen=True):
    """A domain that serves the version."""

    id: Id
    domain_name: str


class AttachedSlug(View, frozen=True):
    """A slug that serves the version."""

    id: Id
    slug: str


class VersionView(RecordView, frozen=True, kw_only=True):
    """A version. `develop` has no creator."""

    experience_version_id: Id
    application_id: Id
    version: str
    endpoint_default_cors: bool
    allowed_cors_origins: list[str]
    globals: list[Any]
    response_headers: dict[str, str]
    attached_domains: list[AttachedDomain]
    attached_slugs: list[AttachedSlug]
    created_by_id: Id | None = None
    created_by_type: By | None = None
    last_updated_by_id: Id | None = None
    last_updated_by_type: By | None = None
    description: str | None = None
    not_found_reply: dict[str, Any] | None = None
    unauthorized_reply: dict[str, Any] | None = None


def _check(change: Change) -> None:
    """Check the settings; give a new version its copies, and another content to one that takes that of a source."""
    owner, new = change.owner, change.new
    source = new.pop("sourceVersionIdOrName", None)
    own = None if change.id == owner.ref.id else change.id
    content = own
    if change.old is None:
        _check_new(change)
        develop = find_version(Staged(owner), owner.ref.id, DEVELOP_NAME).doc
        for name in _SETTINGS:
            # A page may be gone from before its deletion was refused.
            if (
                name in develop
                and name not in change.named
                and (name not in REPLIES or has_page(owner, develop[name]))
            ):
                new.setdefault(name, develop[name])
        content = None
        write_copies(owner, change.id, None, change.now_ms)
        _attach(change, "domainIds", DOMAIN)
        _attach(change, "slugIds", SLUG)
    elif source is not None:
        found = find_version(Staged(owner), owner.ref.id, source).id
        content = None if found == owner.ref.id else found
        if content != own:
            replace_content(owner, own, content, change.now_ms)
    _check_settings(new)
    if not change.is_import:
        _check_named(change.named)
    for field in REPLIES:
        if change.is_import and not has_page(owner, new.get(field), content):
            del new[field]
        elif field in change.named or source is not None:
            check_reply(owner, field, new.get(field), content)


def _check_new(change: Change) -> None:
    owner, name = change.owner, change.new["version"]
    raw = Staged(owner).get(keys.COUNTS, keys.total_key(VERSION.name, owner.ref.id))
    check_number(raw, owner.system.limits.experience_versions_max, "versions")
    if name == DEVELOP_NAME or looks_like_id(name):
        raise Invalid(f"version: {name} cannot be the name of a version; develop and ids mean other things.")
    if not change.is_import:
        if name.lower() in RESERVED:  # no workflow has a version of this name
            raise Invalid(f"version: {name!r} is reserved; give another name.")
        check_addressable(name)
    if version_of_name(Staged(owner), owner.ref.id, name) is not None:
        raise Invalid(f"version: there is a version {name} already; choose another name.")


def _attach(change: Change, field: str, kind: Kind) -> None:
    """Let domains or slugs name the new version."""
    owner = change.owner
    for id in dict.fromkeys(each.lower() for each in change.new.pop(field, ())):
        found = records.find(Staged(owner), kind, owner.ref.id, bytes.fromhex(id))
        if found is None:
            raise Invalid(f"{field}: there is no {kind.noun} {id} in this application.")
        after = {**found.doc, "version": change.new["version"]}
        records.write(owner, kind, owner.ref.id, found.id, found.doc, after)


def _check_settings(new: Doc) -> None:
    for name in ("allowedCorsOrigins", "globals"):
        new.setdefault(name, [])
    new.setdefault("endpointDefaultCors", False)
    seen = set()
    for position, item in enumerate(new["globals"]):
        if item["key"] in seen:
            raise Invalid(f"globals: the key {item['key']} appears twice in the list.")
        seen.add(item["key"])
        check_global(item["json"], f"globals[{position}]")
    for origin in new["allowedCorsOrigins"]:
        if not _ORIGIN.fullmatch(origin):
            raise Invalid(
                f"allowedCorsOrigins: {origin} is not a valid origin; write it as https://www.example.com."
            )
    for name, value in new.setdefault("responseHeaders", {}).items():
        if not HEADER_NAME.fullmatch(name):
            raise Invalid(f"responseHeaders: {name!r} is not the name of a header.")
        if any(ord(sign) < 32 or ord(sign) > 255 or ord(sign) == 127 for sign in value):
            raise Invalid(
                f"responseHeaders.{name}: has characters that a header cannot have, such as a line break."
            )


def _check_named(named: Doc) -> None:
    """Check what stored versions may have from before it was refused."""
    for name in named.get("responseHeaders", ()):
        if name.lower() in FRAMING_HEADERS:
            raise Invalid(
                f"responseHeaders: {name} frames the message, which the server does itself; leave it out."
            )
    for field in REPLIES:
        check_address(field, named.get(field))


def _before_delete(owner: Actor, id: bytes, doc: Doc) -> None:
    """Refuse the deletion of a version that domains or slugs name; remove its endpoints and views."""
    journal, application = Staged(owner), owner.ref.id
    for kind, field in ((DOMAIN, "domainName"), (SLUG, "slug")):
        for each in records.all_of_kind(journal, kind, application):
            if each.doc.get("version") == doc["version"]:
                raise Invalid(
                    f"The {kind.noun} {each.doc[field]} serves the version {doc['version']}; let it name another one "
                    "first."
                )
    erase_copies(owner, id)


class _VersionContext(ReadContext):
    """Versions are found by id or name, and `develop` is always there."""

    def find(self, kind: Kind, id: bytes) -> Found:
        """A version by its id, or by the name that the path has in its place. Raises `NotFound`."""
        assert kind is VERSION
        return _with_defaults(find_version(self.snapshot, self.parent, id))

    def all(self, kind: Kind) -> Iterator[Found]:
        """All versions, `develop` first."""
        yield self.find(kind, self.parent)
        yield from map(_with_defaults, super().all(kind))

    def page(self, kind: Kind, query: VersionPage, matches: list[Match]) -> tuple[list[Found], int]:
        """A page of versions. They are few, so all are read."""
        match = all_of(matches)
        matching = [each for each in self.all(kind) if match is None or match(each.doc)]

        def rank(each: Found) -> tuple[bytes, bytes]:
            field = query.sort_field
            return b"" if field == "id" else keys.sortable(each.doc[field]), each.id

        matching.sort(key=rank, reverse=query.sort_direction == "desc")
        skip = query.page * query.per_page
        return matching[skip : skip + query.per_page], len(matching)


def _with_defaults(found: Found) -> Found:
    doc: Doc = {"allowedCorsOrigins": [], "globals": [], "responseHeaders": {}, **found.doc}
    return Found(found.id, doc, found.raw)


def _join(context: ReadContext, _id: bytes, doc: Doc, _query: object) -> Doc:
    """The domains and slugs that name the version."""
    return {
        name: [
            {"id": each.id.hex(), field: each.doc[field]}
            for each in records.all_of_kind(context.snapshot, kind, context.parent)
            if each.doc.get("version") == doc["version"]
        ]
        for name, kind, field in (
            ("attachedDomains", DOMAIN, "domainName"),
            ("attachedSlugs", SLUG, "slug"),
        )
    }


VERSIONS: Final = Resource(
    name="experienceVersion",
    kind=VERSION,
    post=VersionPost,
    patch=VersionPatch,
    page=VersionPage,
    view=VersionView,
    path_parameter="experienceVersionIdOrName",
    check=_check,
    before_delete=_before_delete,
    context=_VersionContext,
    join=_join,
)
