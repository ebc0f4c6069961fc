"""What dashboards add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.portable import WithSecrets, portable
from trunkline.actors.presentation.dashboards import messages, reads
from trunkline.actors.presentation.dashboards.actor import UserJobs
from trunkline.actors.presentation.dashboards.block_data import read_blocks
from trunkline.actors.presentation.dashboards.block_messages import ReadBlocks
from trunkline.actors.presentation.dashboards.report_job import APPLICATION_REPORT, USER_REPORT
from trunkline.actors.presentation.dashboards.report_schedule import ReportDue
from trunkline.actors.presentation.dashboards.report_sections import ReadSections, read_sections
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS, USER_DASHBOARDS
from trunkline.actors.presentation.dashboards.scheduled_reports import ScheduledReports


def _parts(start: Start) -> Iterator[object]:
    due = ReportDue(start.system.moves.away)
    start.system.forgotten.append(due.forget)
    yield due
    yield ScheduledReports(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    moved=(ScheduledReports,),
    resources=(DASHBOARDS, USER_DASHBOARDS),
    actors=(UserJobs,),
    jobs=(APPLICATION_REPORT, USER_REPORT),
    readers={
        messages.FindDashboard: reads.find_dashboard,
        messages.ValidateContext: reads.validate_context,
        ReadBlocks: read_blocks,
        ReadSections: read_sections,
        messages.ListOwnedDashboards: reads.list_owned_dashboards,
    },
    portable=(portable("Dashboard", DASHBOARDS, created_by="applicationDashboards.post", more=WithSecrets),),
)
