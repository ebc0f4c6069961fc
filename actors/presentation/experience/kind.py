"""The kinds of the records of an experience."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.records.kind import NAME_OF_SERVER, Doc, Kind
from trunkline.actors.fleet.devices.record.kind import EXPERIENCE_GROUP
from trunkline.actors.presentation.experience.routes import order_text


def _endpoint_sort_key(doc: Doc, field: str) -> Any:
    return f"{order_text(doc['route'])} {doc['method']}" if field == "order" else doc.get(field)


ENDPOINT: Final = Kind(
    name="experienceEndpoint",
    noun="experience endpoint",
    indexes=("order", "method", "route", "creationDate", "lastUpdated"),
    title="route",
    sort_key=_endpoint_sort_key,
    counted_as="experienceEndpointCount",
    audited_as="ExperienceEndpoint",
)
NO_ENDPOINT: Final = bytes(12)
"""Stands for the endpoint of a request that has none; as the key of a trigger it means any endpoint."""
VIEW: Final = Kind(
    name="experienceView",
    noun="experience view",
    indexes=("name", "creationDate", "lastUpdated", "layoutId"),
    counted_as="experienceViewCount",
    audited_as="ExperienceView",
)
VERSION: Final = Kind(
    name="experienceVersion",
    noun="experience version",
    indexes=("version",),
    title="version",
    counted_as="experienceVersionCount",
    audited_as="ExperienceVersion",
)
"""The named versions. Their names never change."""
DEVELOP: Final = Kind(
    name="experienceDevelop", noun="experience version", indexes=(), counted_as=None, audited_as=None
)
"""The settings of the version `develop`, once they were changed. The id is that of the application."""
ENDPOINT_COPY: Final = Kind(
    name="experienceEndpointCopy",
    noun="experience endpoint",
    indexes=("of",),
    sort_key=_endpoint_sort_key,
    counted_as=None,
    audited_as=None,
)
VIEW_COPY: Final = Kind(
    name="experienceViewCopy", noun="experience view", indexes=("of",), counted_as=None, audited_as=None
)
"""Endpoints and views of named versions. `of` is the id of the version, a slash, and the id of what was copied."""
DOMAIN: Final = Kind(
    name="experienceDomain",
    noun="experience domain",
    indexes=("domainName", "creationDate", "lastUpdated"),
    title="domainName",
    unique=("domainName",),
    unique_in="server",
    counted_as="experienceDomainCount",
    audited_as="ExperienceDomain",
    not_portable=NAME_OF_SERVER,
)
SLUG: Final = Kind(
    name="experienceSlug",
    noun="experience slug",
    indexes=("slug", "creationDate", "lastUpdated"),
    title="slug",
    unique=("slug",),
    unique_in="server",
    counted_as="experienceSlugCount",
    audited_as="ExperienceSlug",
    not_portable=NAME_OF_SERVER,
)
GROUP: Final = EXPERIENCE_GROUP
USER: Final = Kind(
    name="experienceUser",
    noun="experience user",
    indexes=("firstName", "lastName", "email", "creationDate", "lastLogin", "lastUpdated"),
    title="email",
    counted_as="experienceUserCount",
    audited_as="ExperienceUser",
)
