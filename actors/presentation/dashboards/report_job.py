"""The job that makes the report of a dashboard: a mail, which is then sent to its readers.

It reads everything on one snapshot of each partition, with the authority that the caller has then: a token that was
revoked in the meantime, or a user who lost an application, gets no report of it. The mail is the result of the job. It
is sent as the notification of the end of the job, so to each reader at least once: after a kill -9 between the sending
and the note that it was sent, it is sent again with the same Message-ID. The job itself sends nothing and may run any
number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.platform.jobs.job import Job, JobKind
from trunkline.actors.presentation.dashboards.block_data import by_process
from trunkline.actors.presentation.dashboards.report import Moment, Paragraph, Report, Section
from trunkline.actors.presentation.dashboards.report_charts import draw
from trunkline.actors.presentation.dashboards.report_sections import (
    ReadSections,
    ReportDashboard,
    find_dashboard,
    read_sections,
)

if TYPE_CHECKING:
    from trunkline.actors.platform.jobs.results import Write
    from trunkline.limits.table import Limits
    from trunkline.store.snapshot import Snapshot


async def send_report(job: Job) -> Doc:
    """Make the mail of a report. Input: the options (`report_options`)."""
    limits = job.system.limits
    found = await job.read(partial(find_dashboard, owner=job.owner.id, dashboard=job.resource))
    report = _report(found.doc, await _sections(job, found), job.input, limits)
    subject = job.input["subject"] or f"Report: {found.doc['name']}"
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


def _report(doc: Doc, sections: Iterable[Section], options: Doc, limits: Limits) -> Report:
    """The report of the sections in their order, within its bounds."""
    kept: list[Section] = []
    charts = characters = 0
    for each in sections:
        section = each
        if characters > limits.report_characters_max:
            section = section._replace(parts=[_TOO_LARGE])
        elif charts >= limits.report_charts_max:
            section = section.without_charts()
        charts += section.charts
        characters += section.characters
        kept.append(section)
    return Report(
        title=doc["name"],
        message=options["message"],
        sections=kept,
        at=Moment(options["time"]),
        timezone=options["timezone"],
        locale=options["locale"],
        theme=options["theme"] or doc.get("defaultTheme", "light"),
    )


async def _sections(job: Job, dashboard: ReportDashboard) -> list[Section]:
    """The sections in the order of the blocks, from above: those of applications elsewhere are read there."""
    system, blocks = job.system, dashboard.doc["blocks"]
    job.completed, job.total = 0, len(blocks)
    message = ReadSections(job.owner.id, job.resource, job.by, job.input, ())
    sections: dict[int, Section] = {}

    def done() -> None:
        job.completed += 1

    for application, positions in by_process(system, dashboard.holder, blocks, range(len(blocks))).items():
        part = msgspec.structs.replace(message, positions=positions)
        if application is None or system.peers is None:
            read = partial(_read_here, system.limits, part, done)
            sections |= await job.read(read)
        else:
            sections |= await system.peers.read(application, part)
            job.completed += len(positions)
    order = sorted(range(len(blocks)), key=lambda each: (blocks[each]["startY"], blocks[each]["startX"]))
    return [sections[position] for position in order]


def _read_here(
    limits: Limits, message: ReadSections, done: Callable[[], None], snapshot: Snapshot
) -> dict[int, Section]:
    return read_sections(Reading(snapshot, limits, in_loop=False), message, done)


_TOO_LARGE = Paragraph("The report would be too large with this block.", is_problem=True)
_GATE = "dashboard_report_concurrent_calls_max"

APPLICATION_REPORT = JobKind("applicationDashboard.sendReport", "dashboard", send_report, gate=_GATE)
USER_REPORT = JobKind("dashboard.sendReport", "dashboard", send_report, gate=_GATE, owner="userJobs")
