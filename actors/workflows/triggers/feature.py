"""What triggers of workflows add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.workflows.triggers import run_messages, run_reads
from trunkline.actors.workflows.triggers.button import VirtualButton
from trunkline.actors.workflows.triggers.index import FlowIndex
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.actors.workflows.triggers.replay import FlowReplayer
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.actors.workflows.triggers.scheduled import ScheduledPresses
from trunkline.actors.workflows.triggers.timers import Timers


def _parts(start: Start) -> Iterator[object]:
    system = start.system
    owner_of = system.component(Owners).of
    yield TriggerQueue(system.limits, system.clock, owner_of)
    yield Replies(system.lasting, owner_of)
    yield Timers(system)
    yield FlowIndex(system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(Timers,),
    moved=(Replies, Timers),
    actors=(VirtualButton, ScheduledPresses, FlowReplayer),
    readers={
        run_messages.ListRuns: run_reads.list_runs,
        run_messages.GetRun: run_reads.get_run,
        run_messages.GetMissedRuns: run_reads.get_missed_runs,
        run_messages.ChooseRun: run_reads.choose_run,
        run_messages.ChooseRuns: run_reads.choose_runs,
    },
)
