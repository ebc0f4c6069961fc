"""The export and import of experiences: what `develop` has, and the named versions with their endpoints and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal

from trunkline.actors.core.records import records
from trunkline.actors.core.records.export_lines import PlainLines, body_of, by_parent, line
from trunkline.actors.core.records.messages import PatchRecord
from trunkline.actors.core.records.portable import Item, Portable, WithSecrets, portable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.presentation.experience.content import all_in
from trunkline.actors.presentation.experience.copies import ImportVersion
from trunkline.actors.presentation.experience.endpoints import ENDPOINTS
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.kind import (
    DEVELOP,
    DOMAIN,
    ENDPOINT,
    ENDPOINT_COPY,
    GROUP,
    SLUG,
    USER,
    VERSION,
    VIEW,
    VIEW_COPY,
)
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS
from trunkline.actors.presentation.experience.versions import VERSIONS, VersionPatch, VersionPost
from trunkline.actors.presentation.experience.views import VIEWS

if TYPE_CHECKING:
    from trunkline.actors.core.records.export_lines import Lines, Rank
    from trunkline.actors.core.records.revision import Found
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot

VersionPart = Literal["ExperienceView", "ExperienceEndpoint"]
"""What a named version of the experience has copies of, in the order of creation."""


def _view_rank(_snapshot: Snapshot, _application: bytes) -> Rank:
    """Pages with a layout after all others."""
    return lambda doc: int(doc.get("layoutId") is not None)


_PARTS: Final[Mapping[VersionPart, PlainLines]] = {
    "ExperienceView": PlainLines(VIEWS, rank=_view_rank),
    "ExperienceEndpoint": PlainLines(ENDPOINTS),
}
VERSION_PARTS: Final = tuple(_PARTS)


def version_lines(snapshot: Snapshot, application: bytes, version: bytes, name: VersionPart) -> Lines:
    """The lines of the endpoints or the views of a named version, by their names.

    Not by ids: an import into the same application keeps those of some and gives new ones to others.
    """
    reader = _PARTS[name]
    rank = None if reader.rank is None else reader.rank(snapshot, application)

    def place(each: Found) -> tuple[int, list[str]]:
        named = [str(each.doc.get(field)) for field in ("route", "method", "viewType", "name")]
        return 0 if rank is None else rank(each.doc), named

    # The size of a version is bounded.
    found = sorted(all_in(snapshot, reader.resource.kind, application, version), key=place)
    return (reader.line(each.id, each.doc) for each in found)


def _read_develop(snapshot: Snapshot, application: bytes) -> Lines:
    found = records.find(snapshot, DEVELOP, application, application)
    if found is not None:
        yield {"body": body_of(VersionPatch, found.doc)}


def _read_versions(snapshot: Snapshot, application: bytes) -> Lines:
    for id, doc in records.scan(snapshot, VERSION, application):
        # A new version takes the replies of `develop` where its body has none; null says that there is none.
        yield line(id, {"notFoundReply": None, "unauthorizedReply": None} | body_of(VersionPost, doc))


def _make_develop(item: Item) -> Iterator[Ask]:
    patch = PatchRecord(
        resource=VERSIONS.name, record=item.application, body=item.body, by=item.by, is_import=True
    )
    yield Ref("experience", item.application, item.application), patch


def _make_version(item: Item) -> Iterator[Ask]:
    message = ImportVersion(
        id=item.id,
        body=item.body,
        patch=None if item.existing is None else item.patch(VersionPatch),
        endpoints=item.copies.get("ExperienceEndpoint", []),
        views=item.copies.get("ExperienceView", []),
        by=item.by,
    )
    yield Ref("experience", item.application, item.application), message


EXPERIENCE: Final = (
    # Groups say nothing of their users and endpoints: these name their groups.
    portable(
        "ExperienceGroup",
        GROUPS,
        "experience",
        created_by="experienceGroups.post",
        without=frozenset({"experienceUserIds", "experienceEndpointIds"}),
        rank=by_parent(GROUP),
        references={
            "deviceIds": DEVICE,
            "parentId": GROUP,
            "experienceUserIds": USER,
            "experienceEndpointIds": ENDPOINT,
        },
    ),
    portable(
        "ExperienceUser",
        EXPERIENCE_USERS,
        "experience",
        created_by="experienceUsers.post",
        more=WithSecrets,
        same=("email",),
        references={"experienceGroupIds": GROUP},
    ),
    portable(
        "ExperienceView",
        VIEWS,
        "experience",
        created_by="experienceViews.post",
        rank=_view_rank,
        same=("name", "viewType"),
        references={"layoutId": VIEW},
    ),
    portable(
        "ExperienceEndpoint",
        ENDPOINTS,
        "experience",
        created_by="experienceEndpoints.post",
        same=("route", "method"),
        references={"experienceGroupIds": GROUP},
    ),
    Portable(
        name="ExperienceDevelopConfig",
        created_by="experienceVersion.patch",
        changed_by="experienceVersion.patch",
        body=VersionPatch,
        kinds=(DEVELOP,),
        has_id=False,
        read=_read_develop,
        make=_make_develop,
    ),
    Portable(
        name="ExperienceVersion",
        created_by="experienceVersions.post",
        changed_by="experienceVersion.patch",
        body=VersionPost,
        kinds=(VERSION, ENDPOINT_COPY, VIEW_COPY),
        contents="versions",
        read=_read_versions,
        make=_make_version,
        same=("version",),
        references={"domainIds": DOMAIN, "slugIds": SLUG},
    ),
)
