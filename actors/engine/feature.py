"""What the engine adds to the server: dry runs, and the reads of workflows that need its nodes."""

from __future__ import annotations

from functools import partial
from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.engine.dry_run import FlowTester
from trunkline.actors.engine.palette import node_types
from trunkline.actors.engine.program import problems_of
from trunkline.actors.workflows.flows import messages, reads

FEATURE: Final = Feature(
    actors=(FlowTester,),
    readers={
        messages.GetFlow: partial(reads.get_flow, problems_of),
        messages.GetFlowVersion: partial(reads.get_flow_version, problems_of),
        messages.GetImported: partial(reads.get_imported, problems_of),
        messages.GetPalette: partial(reads.get_palette, node_types),
    },
)
