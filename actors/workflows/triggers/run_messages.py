"""Runs of workflows: query strings, bodies, messages and answers."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body, Message, Query, View
from trunkline.actors.core.values.terms import Id, IsoTime, Name, QueryTime
from trunkline.actors.workflows.flows.run_records import Outcome

_Word = Annotated[str, Meta(min_length=1, max_length=255)]


class RunPage(Query, frozen=True):
    """Which runs are listed, the newest first. `page` counts from zero."""

    page: Annotated[int, Meta(ge=0, le=10_000)] = 0
    per_page: Annotated[int, Meta(ge=1, le=1000)] = 100
    outcome: Outcome | None = None
    flow_version: Name | None = None
    trigger_type: _Word | None = None
    device_id: Id | None = None
    since: QueryTime | None = None


class ReplayPost(Body, frozen=True):
    """In which version a run is repeated."""

    hint: ClassVar[str] = '{"flowVersion": "develop"}'
    flow_version: Name | UnsetType = UNSET


_Position = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{32}$",
        max_length=32,
        extra={FORM: "the 32 hexadecimal digits that an answer has in continueAt"},
    ),
]


class ReplaysPost(ReplayPost, frozen=True):
    """Which runs are repeated, the oldest first, and in which version."""

    hint: ClassVar[str] = '{"since": "2024-05-01T12:00:00.000Z", "flowVersion": "develop"}'
    since: QueryTime | UnsetType = UNSET
    end: QueryTime | UnsetType = UNSET
    continue_at: _Position | UnsetType = UNSET


# Answers.


class RunNode(View, frozen=True, kw_only=True):
    """The node that something is about."""

    node_id: str | None = None
    node_type: str | None = None
    node_label: str | None = None


class RunStep(RunNode, frozen=True, kw_only=True):
    """A visit of a node."""

    output: int
    took_us: int


class RunDebug(RunNode, frozen=True, kw_only=True):
    """A message of a debug node."""

    level: str
    message: str
    value: Any


class RunNote(RunNode, frozen=True, kw_only=True):
    """Something that a node ignored, and how often."""

    message: str
    count: int


class RunFailure(RunNode, frozen=True, kw_only=True):
    """Why a run has failed."""

    name: str
    message: str


class RunSummary(View, frozen=True, kw_only=True):
    """A run that has ended, or triggers that were dropped. Without `queued` and its neighbours these."""

    id: Id
    outcome: Outcome
    time: IsoTime
    flow_version: str
    flow_version_id: Id | None = None
    trigger_type: str | None = None
    trigger_key: str | None = None
    trigger_id: str | None = None
    queued: IsoTime | None = None
    began: IsoTime | None = None
    wall_time: float | None = None
    steps: int | None = None
    can_replay: bool | None = None
    dropped: int | None = None
    device_id: Id | None = None
    replay_of: Id | None = None
    note_count: int | None = None
    error: RunFailure | None = None


class RunView(RunSummary, frozen=True, kw_only=True):
    """A run with its path."""

    path: list[RunStep]
    debug: list[RunDebug]
    notes: list[RunNote]
    payload: dict[str, Any] | None = None


class RunQueue(View, frozen=True, kw_only=True):
    """What waits to be run."""

    waiting: int
    oldest: IsoTime | None = None


class RunList(View, frozen=True, kw_only=True):
    """A page of the runs of a workflow."""

    items: list[RunSummary]
    count: int
    total_count: int
    page: int
    per_page: int
    application_id: Id
    flow_id: Id
    queue: RunQueue
    type: str | None = msgspec.field(default=None, name="_type")


class Replayed(View, frozen=True):
    """A run that is queued, and the run that it repeats."""

    id: Id
    replay_of: Id


class ReplayedRuns(View, frozen=True, kw_only=True):
    """The runs that are queued; `skipped` could not be repeated. `continueAt` is for the next call, if more follow."""

    runs: list[Replayed]
    skipped: int
    continue_at: str | None = None


# Messages.


class ListRuns(Message, frozen=True):
    """A page of the run records of a workflow."""

    application: bytes
    flow: bytes
    query: RunPage
    now_ms: int


class GetRun(Message, frozen=True):
    """One run."""

    application: bytes
    flow: bytes
    run: bytes


class GetMissedRuns(Message, frozen=True):
    """The runs that ended after a position: at most `limit` with about `bytes_max`. Answers a `Missed`."""

    application: bytes
    flow: bytes
    position: int
    limit: int
    bytes_max: int


class Chosen(msgspec.Struct, frozen=True):
    """Runs that are to be repeated: number and trigger of each. `skipped` is as in `ReplayedRuns`, `next` as well."""

    triggers: list[tuple[int, bytes]]
    skipped: int = 0
    next: str | None = None


class ChooseRun(Message, frozen=True):
    """The run of the path, to be repeated. Answers a `Chosen`."""

    application: bytes
    flow: bytes
    run: bytes


class ChooseRuns(Message, frozen=True):
    """The failed and abandoned runs of a range, to be repeated. Answers a `Chosen`."""

    application: bytes
    flow: bytes
    body: ReplaysPost
    now_ms: int


class ReplayRuns(Message, frozen=True):
    """Queue runs again. Answers `ReplayedRuns`. `skips`: leave out those whose trigger the version does not have."""

    triggers: list[tuple[int, bytes]]
    flow_version: str | None
    skips: bool
