"""Runs of workflows: listed, shown, streamed, and repeated."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.messages import KeepAlive
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.actors.workflows.triggers.replay import replayer_ref
from trunkline.actors.workflows.triggers.run_messages import (
    ChooseRun,
    ChooseRuns,
    Chosen,
    GetRun,
    ListRuns,
    Replayed,
    ReplayedRuns,
    ReplayPost,
    ReplayRuns,
    ReplaysPost,
    RunList,
    RunPage,
    RunView,
)
from trunkline.http.calls.call import Call
from trunkline.http.calls.request import Response
from trunkline.http.calls.responses import json_response
from trunkline.http.calls.route import FLOW_PATH, Route
from trunkline.http.calls.verbs import get, post, stream
from trunkline.http.streams.sse import run_stream

RUNS = FLOW_PATH + "/runs"
RUN = RUNS + "/{runId}"


async def list_runs(call: Call) -> Response:
    """List the run records of the workflow, and what waits in its queue.

    Failed runs and a sample of the others have a record. A run that waits, or is in progress, has none yet.
    """
    shown = await call.service.read(call, ListRuns)
    queue = call.service.system.component(TriggerQueue)
    place = call.application, call.ids["flow"]
    oldest_ms = queue.oldest_ms(*place)
    shown["queue"] = {"waiting": queue.waiting_of(*place)}
    if oldest_ms is not None:
        shown["queue"]["oldest"] = iso(oldest_ms)
    return json_response(call, 200, shown)


async def replay_run(call: Call) -> Response:
    """Queue the trigger of a run again: for the default version, or for the one that the body names."""
    chosen: Chosen = await call.service.read(call, ChooseRun)
    replayed = await _replay(call, chosen, skips=False)
    return json_response(call, 200, msgspec.to_builtins(replayed.runs[0]))


async def replay_runs(call: Call) -> Response:
    """Queue the triggers of the failed and abandoned runs of a range again, the oldest first: at most 100 in a call.

    `continueAt` of the answer is for the next call. `skipped` runs have no trigger, or the version does not have it.
    """
    chosen: Chosen = await call.service.read(call, ChooseRuns)
    replayed = await _replay(call, chosen, skips=True)
    shown: dict[str, Any] = msgspec.to_builtins(replayed)
    shown["skipped"] += chosen.skipped
    if chosen.next is not None:
        shown["continueAt"] = chosen.next
    return json_response(call, 200, shown)


async def _replay(call: Call, chosen: Chosen, *, skips: bool) -> ReplayedRuns:
    system = call.service.system
    system.check_load()
    version = None if call.body.flow_version is UNSET else call.body.flow_version
    message = ReplayRuns(triggers=chosen.triggers, flow_version=version, skips=skips)
    answer = await system.ask(replayer_ref(call.application, call.ids["flow"]), message)
    replayed: ReplayedRuns = answer.value
    return replayed


ROUTES: tuple[Route, ...] = (
    get(
        RUNS,
        "flowRuns.get",
        "List the runs of a workflow, the newest first",
        list_runs,
        RunList,
        uses=(ListRuns,),
        query=RunPage,
    ),
    post(
        RUNS + "/replay",
        "flowRuns.replay",
        "Repeat the failed runs of a workflow",
        replay_runs,
        uses=(ChooseRuns,),
        body=ReplaysPost,
        reply=ReplayedRuns,
    ),
    get(RUN, "flowRun.get", "Get a run of a workflow with its path", GetRun, RunView),
    post(
        RUN + "/replay",
        "flowRun.replay",
        "Repeat a run of a workflow",
        replay_run,
        uses=(ChooseRun,),
        body=ReplayPost,
        reply=Replayed,
    ),
    stream(
        FLOW_PATH + "/runStream",
        "flow.runStream",
        "Stream the runs of a workflow that end",
        run_stream,
        ("flowRun", RunView),
        query=KeepAlive,
    ),
)
