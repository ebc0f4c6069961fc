"""The two kinds that are parents of all others: users and applications."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import OTHER_OWNER, Kind, Prefixes
from trunkline.actors.core.values.ids import ROOT
from trunkline.store import keys

USER: Final = Kind(
    name="user",
    noun="user",
    home="root",
    indexes=(),
    ends_access=frozenset(
        {"email", "passwordHash", "tokenCutoff", "tokenGeneration", "twoFactorAuthEnabled"}
    ),
    counted_as=None,
    audited_as=None,
    not_portable=OTHER_OWNER,
)


def _figures(_root: bytes, application: bytes) -> Prefixes:
    """What belongs to an application outside of its record: counts, parts of workflows, answers, notes about jobs."""
    return (
        (keys.COUNTS, application),
        (keys.FLOWS, application),
        (keys.EVENTS, application),
        (keys.ANSWERS, application),
        (keys.MESSAGES, application),
        (keys.META, keys.jobs_key(application)),
        (keys.META, keys.job_data_prefix(application)),
        (keys.META, keys.event_jobs_prefix(application)),
        (keys.META, keys.flow_timers_prefix(application)),
        (keys.META, keys.scheduled_prefix(application)),
        (keys.META, keys.webhook_connections_prefix(application)),
        (keys.META, keys.archive_key(application)),
        (keys.META, keys.open_links_prefix(application)),
        (keys.META, keys.waiting_peripherals_prefix(application)),
        (keys.META, keys.untold_alarms_prefix(application)),
        (keys.META, keys.caused_alarms_prefix(application)),
        (keys.META, keys.alarm_notices_prefix(application)),
    )


def experience_slug_key(slug: str) -> bytes:
    """The key in UNIQUE of the slug of an experience, which is not the `endpointSlug` of any application either."""
    return keys.unique_key("experienceSlug", ROOT, "slug", slug)


ORGANIZATION_NAME: Final = "org"
"""The name of the kind of organizations (`people/organizations/membership.py`)."""

APPLICATION: Final = Kind(
    name="application",
    noun="application",
    indexes=(),
    facet="ownerId",
    facet_indexes=("name", "creationDate", "lastUpdated"),
    ends_access=frozenset({"ownerId"}),
    owned_keys=_figures,
    counted_as=None,
    audited_as=None,
)
