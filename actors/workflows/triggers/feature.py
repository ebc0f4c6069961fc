"""What triggers of workflows add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.workflows.triggers import run_messages, run_reads
from trunkline.actors.workflows.triggers.button import VirtualButton
from trunkline.actors.workflows.triggers.replay import FlowReplayer
from trunkline.actors.workflows.triggers.scheduled import ScheduledPresses

FEATURE: Final = Feature(
    actors=(VirtualButton, ScheduledPresses, FlowReplayer),
    readers={
        run_messages.ListRuns: run_reads.list_runs,
        run_messages.GetRun: run_reads.get_run,
        run_messages.GetMissedRuns: run_reads.get_missed_runs,
        run_messages.ChooseRun: run_reads.choose_run,
        run_messages.ChooseRuns: run_reads.choose_runs,
    },
)
