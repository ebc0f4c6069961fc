"""What workflows add to the server. The reads that need the engine are listed by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.workflows.flows import imports, messages, reads, runs
from trunkline.actors.workflows.flows.actor import Flow
from trunkline.actors.workflows.flows.changes import FlowChanges
from trunkline.actors.workflows.flows.due_times import DueTimes, Watches
from trunkline.actors.workflows.flows.jobs import DELETE_VERSIONS
from trunkline.actors.workflows.flows.kind import FLOW, FLOW_VERSION
from trunkline.actors.workflows.flows.portable import FLOWS
from trunkline.actors.workflows.flows.selection import SelectOfClass, select_of_class


def _parts(start: Start) -> Iterator[object]:
    due, watches = DueTimes(start.system.moves.away), Watches()
    start.system.forgotten += (due.forget, watches.forget)
    return iter((FlowChanges(), due, watches))


FEATURE: Final = Feature(
    parts=_parts,
    kinds=(FLOW, FLOW_VERSION),
    actors=(Flow,),
    fields=(messages.FLOW_FIELDS, messages.FLOW_BY_VERSION_FIELDS, messages.FLOW_VERSION_FIELDS),
    jobs=(DELETE_VERSIONS,),
    readers={
        SelectOfClass: select_of_class,
        messages.ListFlows: reads.list_flows,
        messages.ListFlowsByVersion: reads.list_flows_by_version,
        messages.PrepareImport: imports.prepare_import,
        messages.ListFlowVersions: reads.list_flow_versions,
        messages.SelectVersions: reads.select_versions,
        messages.SelectTriggered: reads.select_triggered,
        messages.GetStorage: runs.get_storage,
        messages.GetStorageSize: runs.get_storage_size,
        messages.GetFlowErrors: runs.get_flow_errors,
        messages.GetFlowStats: runs.get_flow_stats,
        messages.GetFlowLog: runs.get_flow_log,
    },
    portable=FLOWS,
)
