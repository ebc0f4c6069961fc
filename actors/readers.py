"""The table of readers: the function that answers each read message, and where it runs.

A short read runs in the event loop on its own snapshot; a long one (a scan of an application, a query over history)
runs the same function in a worker thread. The function itself decides whether it is long (`Reading.check_time`).
In both cases it sees every write that was acknowledged before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from trunkline.actors import profile
from trunkline.actors.access.certificate_login import AdmitCertificate, admit_certificate
from trunkline.actors.catalogue import COUNTED, KINDS, RESOURCES
from trunkline.actors.connections.credential_links import GetLinkedResources, get_linked_resources
from trunkline.actors.core.query.price import looked_at
from trunkline.actors.core.records import resource
from trunkline.actors.core.records.messages import GetRecord, ListRecords
from trunkline.actors.core.records.read_time import Inline, ReadTime
from trunkline.actors.core.records.reading import Reading, TakesLong
from trunkline.actors.core.values.errors import Crashed
from trunkline.actors.core.values.structs import Message
from trunkline.actors.data.events import reads as events
from trunkline.actors.data.events.changes import get_missed_changes
from trunkline.actors.data.events.messages import GetEvent, GetMissedChanges, GetMostRecentEvent, ListEvents
from trunkline.actors.data.files import messages as file
from trunkline.actors.data.files import reads as files
from trunkline.actors.data.tables import pages as rows
from trunkline.actors.data.tables import reads as tables
from trunkline.actors.data.tables.messages import GetDataTable, GetRow, ListDataTables, ListRows, SelectRows
from trunkline.actors.engine.palette import node_types
from trunkline.actors.engine.program import problems_of
from trunkline.actors.fleet.deployments import messages as deployment
from trunkline.actors.fleet.deployments import reads as deployments
from trunkline.actors.fleet.devices.actor import state_feed
from trunkline.actors.fleet.devices.bulk import bulk_selection
from trunkline.actors.fleet.devices.bulk.bulk_messages import ChooseDevices
from trunkline.actors.fleet.devices.queries import (
    counts,
    lists,
    measurements,
    organization_counts,
    period_summaries,
    selection,
)
from trunkline.actors.fleet.devices.queries.measurement_messages import QueryLastValues, QueryTimeSeries
from trunkline.actors.fleet.devices.record import read_messages as device
from trunkline.actors.fleet.devices.record import reads as devices
from trunkline.actors.fleet.devices.state import history
from trunkline.actors.fleet.recipes import bulk_create
from trunkline.actors.fleet.recipes.messages import OpenRecipe
from trunkline.actors.people.accounts.messages import GetMe
from trunkline.actors.people.accounts.recent_items import CheckRecentItem, ListRecentItems
from trunkline.actors.people.audit import reads as audit
from trunkline.actors.people.audit.messages import (
    GetAuditLog,
    GetOwnAuditLog,
    ListAuditLogs,
    ListOwnAuditLogs,
)
from trunkline.actors.people.organizations import invitations
from trunkline.actors.people.organizations import reads as organizations
from trunkline.actors.people.organizations.messages import GetOrg, ListOrgs
from trunkline.actors.platform.applications import notebook_minutes, payload_counts
from trunkline.actors.platform.applications import reads as applications
from trunkline.actors.platform.applications.messages import GetApplication, ListApplications
from trunkline.actors.platform.applications.readme import GetReadme, get_readme
from trunkline.actors.platform.applications.search import Search, search
from trunkline.actors.platform.jobs import reads as jobs
from trunkline.actors.platform.jobs.messages import GetJobLog, ListJobLogs
from trunkline.actors.portability.bundles.import_logs import ListImportLogs, list_import_logs
from trunkline.actors.presentation.dashboards import reads as dashboards
from trunkline.actors.presentation.dashboards.block_data import read_blocks
from trunkline.actors.presentation.dashboards.block_messages import ReadBlocks
from trunkline.actors.presentation.dashboards.messages import (
    FindDashboard,
    ListOwnedDashboards,
    ValidateContext,
)
from trunkline.actors.presentation.experience import resource as experience
from trunkline.actors.presentation.experience import versions
from trunkline.actors.presentation.experience.access import MayUseDevice, may_use_device
from trunkline.actors.presentation.experience.linked import GetExperienceLinks, get_linked
from trunkline.actors.presentation.experience.stats import GetEndpointStats, get_stats
from trunkline.actors.presentation.notebooks.export import prepare_inputs
from trunkline.actors.presentation.notebooks.messages import PrepareInputs
from trunkline.actors.presentation.overview.fleet import count_fleet
from trunkline.actors.presentation.overview.messages import CountFleet, GetOverview, ListSilentDevices
from trunkline.actors.presentation.overview.reads import get_overview, list_silent_devices
from trunkline.actors.workflows.flows import imports, runs
from trunkline.actors.workflows.flows import messages as flow
from trunkline.actors.workflows.flows import reads as flows
from trunkline.actors.workflows.flows.selection import SelectOfClass, select_of_class
from trunkline.actors.workflows.triggers import run_reads
from trunkline.actors.workflows.triggers.run_messages import (
    ChooseRun,
    ChooseRuns,
    GetMissedRuns,
    GetRun,
    ListRuns,
)
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

LATER: Final = object()
"""Returned by `read_at_once` for a read that must run in a worker thread."""

_log = structlog.get_logger("trunkline.actors")

Reader = Callable[[Reading, Any], Any]

READERS: Final[Mapping[type[Message], Reader]] = {
    AdmitCertificate: admit_certificate,
    GetApplication: partial(applications.get_application, COUNTED),
    ListApplications: partial(applications.list_applications, COUNTED),
    GetMe: profile.get_me,
    CheckRecentItem: profile.check_recent_item,
    ListRecentItems: profile.list_recent_items,
    notebook_minutes.CountNotebookMinutes: notebook_minutes.count_notebook_minutes,
    notebook_minutes.CountMyNotebookMinutes: notebook_minutes.count_my_notebook_minutes,
    GetReadme: get_readme,
    CountFleet: count_fleet,
    GetOverview: get_overview,
    ListSilentDevices: list_silent_devices,
    Search: partial(search, KINDS),
    ListImportLogs: list_import_logs,
    GetOrg: partial(organizations.get_org, COUNTED),
    ListOrgs: partial(organizations.list_orgs, COUNTED),
    organization_counts.CountOrgDevices: organization_counts.count_org_devices,
    organization_counts.CountOrgPayloads: organization_counts.count_org_payloads,
    organization_counts.BreakDownOrgPayloads: organization_counts.break_down_org_payloads,
    organization_counts.CountOrgNotebookMinutes: organization_counts.count_org_notebook_minutes,
    invitations.ListInvites: invitations.list_invites,
    invitations.ListMyInvites: invitations.list_my_invites,
    invitations.GetMyInvite: invitations.get_my_invite,
    invitations.GetInvite: invitations.get_invite,
    invitations.FindInvite: invitations.find_invite,
    GetRecord: partial(resource.get_record, RESOURCES),
    ListRecords: partial(resource.list_records, RESOURCES),
    device.GetDevice: devices.get_device,
    device.ListDevices: lists.list_devices,
    device.GetState: history.get_state,
    device.GetCommand: history.get_command,
    device.GetLogEntries: history.get_log_entries,
    device.GetCompositeState: history.get_composite_state,
    device.ListCompositeStates: lists.list_composite_states,
    device.GetAttribute: devices.get_attribute,
    device.ListAttributes: devices.list_attributes,
    device.ListAttributeNames: lists.list_attribute_names,
    device.ListDeviceNames: lists.list_device_names,
    device.ListTagKeys: lists.list_tag_keys,
    device.ListTagValues: lists.list_tag_values,
    device.SelectDevices: selection.select_devices,
    OpenRecipe: bulk_create.open_recipe,
    ChooseDevices: bulk_selection.choose_devices,
    device.ReplayCommands: history.replay_commands,
    device.GetMissedStates: state_feed.get_missed_states,
    QueryLastValues: measurements.query_last_values,
    QueryTimeSeries: measurements.query_time_series,
    counts.CountDevices: counts.count_devices,
    counts.CountMyDevices: counts.count_my_devices,
    counts.CountDevicePayloads: counts.count_device_payloads,
    counts.BreakDownDevicePayloads: counts.break_down_device_payloads,
    period_summaries.ListPeriodSummaries: period_summaries.list_period_summaries,
    payload_counts.CountPayloads: payload_counts.count_payloads,
    payload_counts.BreakDownPayloads: payload_counts.break_down_payloads,
    payload_counts.CountMyPayloads: payload_counts.count_my_payloads,
    payload_counts.BreakDownMyPayloads: payload_counts.break_down_my_payloads,
    FindDashboard: dashboards.find_dashboard,
    ValidateContext: dashboards.validate_context,
    ReadBlocks: read_blocks,
    ListOwnedDashboards: dashboards.list_owned_dashboards,
    GetLinkedResources: get_linked_resources,
    GetEvent: events.get_event,
    GetMissedChanges: get_missed_changes,
    ListEvents: events.list_events,
    GetMostRecentEvent: events.get_most_recent_event,
    experience.GetExperienceRecord: partial(experience.get_record, RESOURCES),
    experience.ShowExperienceRecord: partial(experience.show_record, RESOURCES),
    experience.ListExperienceRecords: partial(experience.list_records, RESOURCES),
    GetEndpointStats: get_stats,
    MayUseDevice: may_use_device,
    GetExperienceLinks: partial(get_linked, RESOURCES),
    versions.GetExperienceVersion: versions.get_version,
    versions.ListExperienceVersions: versions.list_versions,
    GetJobLog: jobs.get_job_log,
    ListJobLogs: jobs.list_job_logs,
    GetDataTable: tables.get_data_table,
    ListDataTables: tables.list_data_tables,
    GetRow: rows.get_row,
    ListRows: rows.list_rows,
    SelectRows: rows.select_rows,
    SelectOfClass: select_of_class,
    flow.GetFlow: partial(flows.get_flow, problems_of),
    flow.ListFlows: flows.list_flows,
    flow.ListFlowsByVersion: flows.list_flows_by_version,
    flow.GetPalette: partial(flows.get_palette, node_types),
    flow.PrepareImport: imports.prepare_import,
    flow.GetImported: partial(flows.get_imported, problems_of),
    flow.GetFlowVersion: partial(flows.get_flow_version, problems_of),
    flow.ListFlowVersions: flows.list_flow_versions,
    flow.SelectVersions: flows.select_versions,
    flow.SelectTriggered: flows.select_triggered,
    flow.GetStorage: runs.get_storage,
    flow.GetStorageSize: runs.get_storage_size,
    flow.GetFlowErrors: runs.get_flow_errors,
    flow.GetFlowStats: runs.get_flow_stats,
    flow.GetFlowLog: runs.get_flow_log,
    ListRuns: run_reads.list_runs,
    GetRun: run_reads.get_run,
    GetMissedRuns: run_reads.get_missed_runs,
    ChooseRun: run_reads.choose_run,
    ChooseRuns: run_reads.choose_runs,
    PrepareInputs: prepare_inputs,
    GetAuditLog: audit.get_audit_log,
    ListAuditLogs: audit.list_audit_logs,
    GetOwnAuditLog: audit.get_own_audit_log,
    ListOwnAuditLogs: audit.list_own_audit_logs,
    deployment.GetEdgeDeployment: deployments.get_edge_deployment,
    deployment.GetEmbeddedDeployment: deployments.get_embedded_deployment,
    deployment.ListEdgeDeployments: deployments.list_edge_deployments,
    deployment.ListEmbeddedDeployments: deployments.list_embedded_deployments,
    deployment.SelectDevices: deployments.select_devices,
    deployment.SelectDeployments: deployments.select_deployments,
    # Files.
    file.GetFile: files.get_file,
    file.ListFiles: files.list_files,
    file.FindFile: files.find_file,
}


async def read(
    system: System,
    message: Message,
    finish: Callable[[Any], Any] | None = None,
    finish_long: Callable[[Any], Any] | None = None,
) -> Any:
    """Answer a read message. Raises the reader's `DomainError`, `Overloaded` if too many reads wait.

    `finish` makes of the answer what is returned, and `finish_long` that of a long read, in the thread where it was
    read. A read that takes too long raises as `ReadTime.check`.
    """
    value = read_at_once(system, message)
    if value is not LATER:
        return value if finish is None else finish(value)
    reader, limits = READERS[type(message)], system.limits
    read_time = ReadTime(limits, message)

    def answer(snapshot: Snapshot) -> Any:
        read_time.begin()
        with looked_at(read_time.check):
            value = reader(Reading(snapshot, limits, in_loop=False, system=system), message)
            return value if finish_long is None else finish_long(value)

    try:
        return await system.read(answer, on_step=read_time.check)
    except StoreError as broken:
        raise _broken(message, broken) from broken


def read_at_once(system: System, message: Message) -> Any:
    """Answer a read message without waiting; `LATER` if the read is long. Raises the reader's `DomainError`."""
    reader, inline = READERS[type(message)], Inline()
    try:
        with (
            looked_at(inline.check),
            system.store.snapshot(on_step=inline.check, on_large=inline.take) as snapshot,
        ):
            return reader(Reading(snapshot, system.limits, in_loop=True, system=system), message)
    except TakesLong:
        return LATER
    except StoreError as broken:
        raise _broken(message, broken) from broken


def read_in_turn(actor: Actor, message: Message) -> Any:
    """Answer a read message as if the turn of an actor were stored. For readers of single keys."""
    staged = cast("Snapshot", _Staged(actor))
    return READERS[type(message)](Reading(staged, actor.system.limits, in_loop=True), message)


class _Staged:
    """The store with the writes of a turn."""

    def __init__(self, actor: Actor) -> None:
        self._writes = actor.writes().writes
        self._get = actor.system.journal.get

    def get(self, db: str, key: bytes) -> bytes | None:
        written = self._writes.get(db, {})
        return written[key] if key in written else self._get(db, key)


def _broken(message: Message, broken: StoreError) -> Crashed:
    _log.error("read failed", message=type(message).__name__, exc_info=broken)
    return Crashed("The store failed to read; the fault is logged.")
