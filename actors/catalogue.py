"""The catalogue: the lists of all kinds of records, actors, jobs and plain resources.

They are loops over what the packages say in their `feature.py`; nothing is registered here but the wings. The sweep of
deleted applications, the verification of a store, the counts in summaries, the readers of plain resources and the
schemas of queries are derived from these lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trunkline.actors.access.feature import FEATURE as ACCESS
from trunkline.actors.connections.features import FEATURES as CONNECTIONS
from trunkline.actors.core.contents.uploads import UploadOwner
from trunkline.actors.core.features import FEATURES as CORE
from trunkline.actors.core.query.fields import Fields
from trunkline.actors.core.records.feature import Feature, by_name
from trunkline.actors.core.records.resource import Resource, Resources
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.data.features import FEATURES as DATA
from trunkline.actors.engine.feature import FEATURE as ENGINE
from trunkline.actors.fleet.features import FEATURES as FLEET
from trunkline.actors.people.features import FEATURES as PEOPLE
from trunkline.actors.platform.features import FEATURES as PLATFORM
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.portability.features import FEATURES as PORTABILITY
from trunkline.actors.presentation.features import FEATURES as PRESENTATION
from trunkline.actors.workflows.features import FEATURES as WORKFLOWS

FEATURES: Final[tuple[Feature, ...]] = (
    *CORE,
    *PEOPLE,
    *PLATFORM,
    *WORKFLOWS,
    *FLEET,
    ACCESS,
    *DATA,
    *CONNECTIONS,
    *PRESENTATION,
    ENGINE,
    *PORTABILITY,
)
"""What each package adds, in the order of the packages."""


ACTORS: Final[tuple[type[Actor], ...]] = tuple(
    by_name((actor.kind, actor) for each in FEATURES for actor in each.actors).values()
)

_RESOURCES: Final[tuple[Resource, ...]] = tuple(resource for each in FEATURES for resource in each.resources)
RESOURCES: Final = Resources(by_name((resource.name, resource) for resource in _RESOURCES))
"""The plain resources."""

KINDS: Final = by_name(
    (kind.name, kind)
    for kind in (
        # A search shows what it finds in this order: devices and data first, plain resources last.
        *(kind for each in sorted(FEATURES, key=lambda each: each in WORKFLOWS) for kind in each.kinds),
        *(resource.kind for resource in _RESOURCES),
    )
)
"""All kinds of records by name."""

UPLOADS: Final[Mapping[str, UploadOwner]] = {
    kind: UploadOwner(KINDS[kind], actor) for each in FEATURES for kind, actor in each.uploaded.items()
}
"""The kinds of records whose contents are uploaded by a signed form, each with the actor that completes them."""

COUNTED: Final = by_name((kind.counted_as, kind) for kind in KINDS.values() if kind.counted_as is not None)
"""The fields of an application's summary, each with the kind of records that it counts."""

QUERY_FIELDS: Final[tuple[Fields, ...]] = (
    *(fields for each in FEATURES for fields in each.fields),
    *(resource.fields for resource in _RESOURCES if resource.fields is not None),
)
"""The fields that an advanced query may use, for each resource that supports one."""

JOB_KINDS: Final[tuple[JobKind, ...]] = tuple(
    by_name((job.operation, job) for each in FEATURES for job in each.jobs).values()
)
