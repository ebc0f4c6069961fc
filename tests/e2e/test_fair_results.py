"""Results of jobs of two users: who has stored many leaves half of the room for those of another."""

from __future__ import annotations

from typing import Any

from tests.e2e.conftest import Json
from tests.e2e.neighbours import Tenant, neighbours
from tests.e2e.test_events import ended


async def device(tenant: Tenant, application: str) -> str:
    made = await tenant.call("POST", f"{application}/devices", {"name": "pump", "attributes": []})
    return f"{application}/devices/{made['id']}"


async def exported(tenant: Tenant, path: str) -> Json:
    """The log of an export that has ended."""
    queued = await tenant.call("POST", f"{path}/export", status=202)
    tenant.server.token = tenant.token
    return await ended(tenant.server, path.partition("/devices/")[0], queued["jobId"])


async def test_results_of_an_owner_leave_half_of_the_room(start_server: Any) -> None:
    async with start_server() as server:
        greedy, quiet = await neighbours(server, 2)
        first, second = [await device(greedy, each) for each in greedy.applications]
        own = await device(quiet, quiet.applications[0])
        size = (await exported(greedy, first))["output"]["file"]["size"]
    limits = {"job_results_bytes_max": 3 * size, "job_attempts_max": 1}
    async with start_server(limits=limits) as server:
        greedy.server = quiet.server = server
        refused = await exported(greedy, second)
        assert refused["status"] == "failed"
        assert "The results of earlier jobs leave no room for this one" in str(refused)
        assert (await exported(quiet, own))["status"] == "completed"
