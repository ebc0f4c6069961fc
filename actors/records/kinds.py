"""The two kinds that are parents of all others: users and applications."""

from __future__ import annotations

from typing import Final

from trunkline.actors.records.kind import Kind, Prefixes
from trunkline.store import keys

USER: Final = Kind(
    name="user",
    noun="user",
    home="root",
    indexes=(),
    ends_access=frozenset({"email", "passwordHash", "tokenCutoff", "tokenGeneration"}),
)


def _figures(_root: bytes, application: bytes) -> Prefixes:
    """The counts of an application, the list of its open jobs, and the progress of jobs that change its events."""
    return (
        (keys.COUNTS, application),
        (keys.META, keys.jobs_key(application)),
        (keys.META, keys.event_jobs_prefix(application)),
    )


APPLICATION: Final = Kind(
    name="application",
    noun="application",
    indexes=(),
    facet="ownerId",
    facet_indexes=("name", "creationDate", "lastUpdated"),
    ends_access=frozenset({"ownerId"}),
    owned_keys=_figures,
)
