"""The health of applications: queries, messages of its reads, and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from trunkline.actors.core.records.page import Page
from trunkline.actors.core.values.structs import Message, View
from trunkline.actors.core.values.terms import Id, IsoTime
from trunkline.actors.presentation.overview.messages import FleetView

Verdict = Literal["critical", "warning", "ok", "unknown"]
Level = Literal["critical", "warning", "info"]
Trouble = Literal[
    "silentDevices",
    "neverSeenDevices",
    "openEvents",
    "failedRuns",
    "integrationsDown",
    "failedJobs",
    "refusals",
]


class HealthPage(Page, frozen=True):
    """A page of the applications that the user can read. A page is short: each one may have to be counted."""

    per_page: Annotated[int, Meta(ge=1, le=25)] = 25
    sort_field: Literal["name", "id", "creationDate", "ownerId", "lastUpdated"] = "name"
    filter_field: Literal["name"] | None = None


class GetHealth(Message, frozen=True):
    """The health of an application whose fleet was counted (`Fleets.count`)."""

    application: bytes
    now_ms: int


class ChooseApplications(Message, frozen=True):
    """A page of the applications that a user can read: their ids and names, and how many there are in all."""

    user: bytes
    query: HealthPage


# Answers.


class Culprit(View, frozen=True, kw_only=True):
    """One of those that a reason is about. A device that was deleted since has no name."""

    id: Id
    name: str | None = None
    number: int | None = None


class Reason(View, frozen=True, kw_only=True):
    """Why an application is not well: a sentence, how many it is about, and where they are listed."""

    kind: Trouble
    level: Level
    message: str
    number: int
    of: int | None = None
    operation: str
    items: list[Culprit] = field(default_factory=list)


class Health(View, frozen=True, kw_only=True):
    """Whether an application is well, and the reasons why not, the worst first."""

    application_id: Id
    name: str
    verdict: Verdict
    message: str
    reasons: list[Reason]
    devices: FleetView
    time: IsoTime


class VerdictCounts(View, frozen=True):
    """Applications by their verdict."""

    critical: int
    warning: int
    ok: int
    unknown: int


class HealthList(View, frozen=True, kw_only=True):
    """The health of a page of applications."""

    items: list[Health]
    verdicts: VerdictCounts
    count: int
    total_count: int
    page: int
    per_page: int
    sort_field: str
    sort_direction: str
    time: IsoTime
    filter_field: str | None = None
    filter: str | None = None


Chosen = tuple[list[tuple[bytes, dict[str, Any]]], int]
"""The answer to `ChooseApplications`."""
