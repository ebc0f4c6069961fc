"""The job that makes the report of a dashboard: a mail, which is then sent to its readers.

It reads everything on one snapshot, with the authority that the caller has then: a token that was revoked in the
meantime, or a user who lost an application, gets no report of it. The mail is the result of the job. It is sent as the
notification of the end of the job, so to each reader at least once: after a kill -9 between the sending and the note
that it was sent, it is sent again with the same Message-ID. The job itself sends nothing and may run any number of
times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trunkline.actors.access import authority
from trunkline.actors.access.author_rights import author_of
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import missing
from trunkline.actors.core.values.errors import DomainError, Forbidden
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.presentation.dashboards.block_data import application_of
from trunkline.actors.presentation.dashboards.checks import applications_named
from trunkline.actors.presentation.dashboards.context import resolve_context
from trunkline.actors.presentation.dashboards.holder import Holder, find_holder
from trunkline.actors.presentation.dashboards.kind import DASHBOARD
from trunkline.actors.presentation.dashboards.report import Moment, Paragraph, Report, Section
from trunkline.actors.presentation.dashboards.report_blocks import section_of
from trunkline.actors.presentation.dashboards.report_charts import draw
from trunkline.actors.presentation.dashboards.report_scene import Bounds, Scene

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot


_LINES_MAX: Final = 12
"""Lines of a picture: more cannot be told apart, and the table below has all."""
_LINE_POINTS_MAX: Final = 1000
"""Points of a line: about as many as the picture has columns. Longer lines are thinned."""


async def send_report(job: Job) -> Doc:
    """Make the mail of a report. Input: the options (`report_options`)."""
    limits = job.system.limits
    report, subject = await job.read(lambda snapshot: _collect(snapshot, job, limits))
    pictures = await draw(report, limits)
    mail = await trio.to_thread.run_sync(_mail, report, subject, pictures, limits.report_bytes_max)

    def fill(_snapshot: Snapshot, write: Write) -> None:
        write(mail)

    file = await job.write_file("report.eml", "message/rfc822", fill)
    drawn = sum(picture is not None for picture in pictures)
    return {"file": file, "blocks": len(report.sections), "pictures": drawn}


def _mail(report: Report, subject: str, pictures: list[bytes | None], bytes_max: int) -> bytes:
    """The mail; without pictures if it were larger than a mail may be."""
    from trunkline.actors.presentation.dashboards.report_mail import (
        report_mail,  # takes tenths of a second, and is rarely needed
    )

    mail = report_mail(report, subject, pictures)
    return mail if len(mail) <= bytes_max else report_mail(report, subject, [])


def _collect(snapshot: Snapshot, job: Job, limits: Limits) -> tuple[Report, str]:
    """Read everything that a report shows; also its subject."""
    options: dict[str, Any] = job.input
    holder = find_holder(snapshot, job.owner.id)
    found = None if holder is None else records.find(snapshot, DASHBOARD, holder.id, job.resource)
    if found is None or holder is None:
        raise missing(DASHBOARD, job.resource)
    callers = _callers(snapshot, job)
    for caller in callers:
        _check_reach(snapshot, caller, holder, found.id)
    doc = found.doc
    refused = _refused(snapshot, callers, doc)
    context = resolve_context(snapshot, holder, doc, options["ctx"], refused)
    reading = Reading(snapshot, limits, in_loop=False)
    dashboard: Doc = {name: doc[name] for name in ("name", "duration", "resolution") if name in doc}

    def check(application: bytes) -> None:
        for caller in callers:
            _check_application(snapshot, caller, application)

    bounds = Bounds(limits.report_rows_max, _LINES_MAX, _LINE_POINTS_MAX)
    sections: list[Section] = []
    job.completed, job.total = 0, len(doc["blocks"])
    charts = characters = 0
    for block in sorted(doc["blocks"], key=lambda each: (each["startY"], each["startX"])):
        scene = Scene(
            reading, application_of(holder, block), check, context, dashboard, options["time"], bounds
        )
        section = section_of(scene, block)
        if characters > limits.report_characters_max:
            section = section._replace(parts=[_TOO_LARGE])
        elif charts >= limits.report_charts_max:
            section = section.without_charts()
        charts += section.charts
        characters += section.characters
        sections.append(section)
        job.completed = len(sections)
    report = Report(
        title=doc["name"],
        message=options["message"],
        sections=sections,
        at=Moment(options["time"]),
        timezone=options["timezone"],
        locale=options["locale"],
        theme=options["theme"] or doc.get("defaultTheme", "light"),
    )
    return report, options["subject"] or f"Report: {doc['name']}"


def _callers(snapshot: Snapshot, job: Job) -> list[authority.Principal]:
    """In whose name it is made; without mandates, of its application."""
    if job.by.mandates:
        return [author_of(snapshot, each) for each in job.by.mandates]
    return [
        authority.Principal(
            kind="application", scopes=frozenset(), expires_ms=None, application_id=job.owner.id
        )
    ]


def _refused(snapshot: Snapshot, callers: list[authority.Principal], doc: Doc) -> set[bytes]:
    """The applications of the dashboard that one of the callers does not reach."""
    refused = set()
    for application in applications_named(doc):
        try:
            for caller in callers:
                _check_application(snapshot, caller, application)
        except DomainError:
            refused.add(application)
    return refused


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


_TOO_LARGE = Paragraph("The report would be too large with this block.", is_problem=True)
_GATE = "dashboard_report_concurrent_calls_max"

APPLICATION_REPORT = JobKind("applicationDashboard.sendReport", "dashboard", send_report, gate=_GATE)
USER_REPORT = JobKind("dashboard.sendReport", "dashboard", send_report, gate=_GATE, owner="userJobs")
