"""The sections of a report: what the blocks of a dashboard show, with the authority that its callers have then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.access import authority
from trunkline.actors.access.author_rights import author_of
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.values.errors import Forbidden
from trunkline.actors.core.values.structs import Message
from trunkline.actors.people.accounts.scopes import check_reads
from trunkline.actors.presentation.dashboards.block_data import application_of
from trunkline.actors.presentation.dashboards.context import resolve_context
from trunkline.actors.presentation.dashboards.holder import Holder, find_holder
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.report import Section
from trunkline.actors.presentation.dashboards.report_blocks import section_of
from trunkline.actors.presentation.dashboards.report_scene import Bounds, Scene
from trunkline.actors.presentation.dashboards.rights import CheckRead, Read, refusals_of

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_LINES_MAX: Final = 12
"""Lines of a picture: more cannot be told apart, and the table below has all."""
_LINE_POINTS_MAX: Final = 1000
"""Points of a line: about as many as the picture has columns. Longer lines are thinned."""


class ReadSections(Message, frozen=True):
    """Read the sections of the blocks of a dashboard that show an application; None: those that show none.

    `owner` is the owner of the job of the report, `by` who requested it, `options` are those of the report.
    """

    owner: bytes
    dashboard: bytes
    by: Creator
    options: Doc
    positions: tuple[int, ...]


class ReportDashboard(NamedTuple):
    """The dashboard of a report, and who holds it."""

    holder: Holder
    doc: Doc


def find_dashboard(snapshot: Snapshot, owner: bytes, dashboard: bytes) -> ReportDashboard:
    """The dashboard of a report. Raises NotFound."""
    holder = find_holder(snapshot, owner)
    found = None if holder is None else records.find(snapshot, DASHBOARD, holder.id, dashboard)
    if found is None or holder is None:
        raise missing(DASHBOARD, dashboard)
    return ReportDashboard(holder, found.doc)


def read_sections(
    reading: Reading, message: ReadSections, done: Callable[[], None] = lambda: None
) -> dict[int, Section]:
    """The sections by position; `done` is called after each. Raises `DomainError` if a caller lacks the right."""
    reading.check_time(is_long=True)
    snapshot, options = reading.snapshot, message.options
    holder, doc = find_dashboard(snapshot, message.owner, message.dashboard)
    callers = _callers(snapshot, message)
    for caller in callers:
        _check_reach(snapshot, caller, holder, message.dashboard)

    def check(application: bytes) -> CheckRead:
        for caller in callers:
            _check_application(snapshot, caller, application)

        def check_read(operation: Read) -> None:
            for caller in callers:
                check_reads(caller.scopes, operation)

        return check_read

    refusals = refusals_of(holder, doc, check)
    parameters = resolve_context(snapshot, holder, doc, options["ctx"], refusals)
    dashboard: Doc = {name: doc[name] for name in ("name", "duration", "resolution") if name in doc}

    bounds = Bounds(reading.limits.report_rows_max, _LINES_MAX, _LINE_POINTS_MAX)
    plain = Reading(snapshot, reading.limits, in_loop=False)
    sections: dict[int, Section] = {}
    for position in message.positions:
        block = doc["blocks"][position]
        scene = Scene(
            plain, application_of(holder, block), refusals, parameters, dashboard, options["time"], bounds
        )
        sections[position] = section_of(scene, block)
        done()
    return sections


def _callers(snapshot: Snapshot, message: ReadSections) -> list[authority.Principal]:
    """In whose name it is made; without mandates, of its application."""
    if message.by.mandates:
        return [author_of(snapshot, each) for each in message.by.mandates]
    return [
        authority.Principal(
            kind="application",
            scopes=frozenset({"all.Application"}),
            expires_ms=None,
            application_id=message.owner,
        )
    ]


def _check_reach(snapshot: Snapshot, caller: authority.Principal, holder: Holder, dashboard: bytes) -> None:
    if holder.kind == "application":
        _check_application(snapshot, caller, holder.id)
    elif holder.kind == "org":
        authority.dashboard_access(snapshot, caller, holder.id, dashboard)
    elif caller.user_id != holder.id:
        raise Forbidden("The caller does not reach the dashboard any more.")


def _check_application(snapshot: Snapshot, caller: authority.Principal, application: bytes) -> None:
    if application not in caller.accesses:
        caller.accesses[application] = authority.application_access(snapshot, caller, application)
