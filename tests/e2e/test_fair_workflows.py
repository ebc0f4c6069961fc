"""Workflows of two users: however many applications one has, the other gets its share."""

from __future__ import annotations

from typing import Any

from tests.e2e.neighbours import neighbours
from tests.e2e.sse_client import until
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.engine.runner import FlowRunner
from trunkline.actors.workflows.triggers.queue import TriggerQueue

LOOP = {"type": "RawFunctionNode", "config": {"script": "for (;;) {}"}}
DELAY = {"type": "DelayNode", "config": {"delay": 59}}
SHORT = {"type": "RawFunctionNode", "config": {"script": "payload.data.a = 1"}}


async def test_scripts_of_many_applications_do_not_delay_those_of_another_owner(start_server: Any) -> None:
    limits = {"script_cpu_s": 0.2, "script_processes_max": 2}
    async with start_server(limits=limits) as server:
        greedy, quiet = await neighbours(server)
        pool, runner = server.system.component(ScriptPool), server.system.component(FlowRunner)
        flow = await quiet.flow(quiet.applications[0], SHORT)
        loops = [await greedy.flow(application, LOOP) for application in greedy.applications]
        for loop in loops:
            await greedy.press(loop, 2)
        await until(lambda: pool.waiting >= len(greedy.applications) // 2)
        before = runner.runs
        await quiet.press(flow)
        await quiet.ended(flow)
        assert runner.runs - before < 10, "it waited for the scripts of other applications"


async def test_the_owner_of_an_application_follows_its_transfer_and_its_deletion(start_server: Any) -> None:
    async with start_server() as server:
        greedy, quiet = await neighbours(server, 1)
        owners, path = server.system.component(Owners), greedy.applications[0]
        application = bytes.fromhex(path.rpartition("/")[2])
        assert owners.of(application).hex() == greedy.id
        body = {"destinationId": quiet.id, "destinationType": "user", "applicationIds": [application.hex()]}
        await greedy.call("PATCH", "/me/transferResources", body)
        assert owners.of(application).hex() == quiet.id
        await quiet.call("DELETE", path)
        assert owners.of(application) == application


async def test_delays_of_many_applications_leave_places_for_another_owner(start_server: Any) -> None:
    """Runs that wait have half of the places, and the first run of somebody else begins meanwhile."""
    async with start_server(limits={"flow_runs_max": 16}) as server:
        greedy, quiet = await neighbours(server)
        runner, queue = server.system.component(FlowRunner), server.system.component(TriggerQueue)
        flow = await quiet.flow(quiet.applications[0], SHORT)
        for application in greedy.applications:
            await greedy.press(await greedy.flow(application, DELAY))
        await until(lambda: runner.running == 8)
        assert queue.waiting == len(greedy.applications) - 8
        await quiet.press(flow)
        await quiet.ended(flow)
        assert (runner.running, queue.waiting) == (8, len(greedy.applications) - 8)
