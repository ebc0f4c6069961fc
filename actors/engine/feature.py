"""What the engine adds to the server: dry runs, and the reads of workflows that need its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.engine.api_calls import ApiCalls
from trunkline.actors.engine.branch_memory import BranchMemory
from trunkline.actors.engine.dry_run import FlowTester
from trunkline.actors.engine.expired_runs import search_flows
from trunkline.actors.engine.flow_mails import FlowMails
from trunkline.actors.engine.palette import node_types
from trunkline.actors.engine.program import problems_of
from trunkline.actors.engine.programs import Programs
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.engine.share import Share
from trunkline.actors.engine.world import ReadCalls
from trunkline.actors.workflows.flows import messages, reads
from trunkline.actors.workflows.flows.run_records import ExpireRuns


def _parts(start: Start) -> Iterator[object]:
    system = start.system
    yield Share(system.component(Owners).of_work)
    yield Programs(system)
    yield ReadCalls(start.read)
    yield BranchMemory()
    yield FlowRunner(system)
    yield FlowMails(system.limits)
    yield ApiCalls()


FEATURE: Final = Feature(
    parts=_parts,
    first_tasks=(FlowRunner,),
    stops=(FlowRunner,),
    moved=(FlowRunner,),
    expiries=(Expiry(search_flows, {ExpireRuns: ("flowRun", "flowMinute")}),),
    actors=(FlowTester,),
    readers={
        messages.GetFlow: partial(reads.get_flow, problems_of),
        messages.GetFlowVersion: partial(reads.get_flow_version, problems_of),
        messages.GetImported: partial(reads.get_imported, problems_of),
        messages.GetPalette: partial(reads.get_palette, node_types),
    },
)
