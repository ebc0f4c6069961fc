"""The kinds of the records of an experience."""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.experience.routes import order_text
from trunkline.actors.records.kind import Doc, Kind


def _endpoint_sort_key(doc: Doc, field: str) -> Any:
    return f"{order_text(doc['route'])} {doc['method']}" if field == "order" else doc.get(field)


ENDPOINT: Final = Kind(
    name="experienceEndpoint",
    noun="experience endpoint",
    indexes=("order", "method", "route", "creationDate", "lastUpdated"),
    title="route",
    sort_key=_endpoint_sort_key,
    counted_as="experienceEndpointCount",
)
GROUP: Final = Kind(
    name="experienceGroup",
    noun="experience group",
    indexes=("name", "creationDate", "lastUpdated", "parentId"),
    counted_as="experienceGroupCount",
)
USER: Final = Kind(
    name="experienceUser",
    noun="experience user",
    indexes=("firstName", "lastName", "email", "creationDate", "lastLogin", "lastUpdated"),
    title="email",
    counted_as="experienceUserCount",
)
