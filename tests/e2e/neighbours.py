"""Two users of one server: one with many applications who takes all that it gets, and one who asks for little."""

from __future__ import annotations

from typing import Any

import trio

from tests.e2e.conftest import PASSWORD, Json, Server
from tests.patience import PATIENCE_S
from trunkline.actors import server_users

APPLICATIONS = 30
QUIET = "quiet@example.com"
BUTTON = {"type": "virtualButton", "key": "go", "meta": {"id": "go"}, "outputIds": [["n"]]}


class Tenant:
    """A user with applications."""

    def __init__(self, server: Server, id: str, token: str) -> None:
        self.server = server
        self.id = id
        self.token = token
        self.applications: list[str] = []

    async def call(self, method: str, path: str, body: Json = None, **more: Any) -> Json:
        """Make a call as this user."""
        return await self.server.call(method, path, body, token=self.token, **more)

    async def create(self, count: int = 1) -> str:
        """Create so many applications; the answer is the path of the last one."""
        for number in range(count):
            made = await self.call("POST", "/applications", {"name": f"application {number}"})
            self.applications.append(f"/applications/{made['id']}")
        return self.applications[-1]

    async def flow(self, application: str, node: Json) -> str:
        """Create a workflow with a button and one node; the answer is its path."""
        nodes = [{"id": "n", "config": {}, **node}]
        body = {"name": "flow", "triggers": [BUTTON], "nodes": nodes}
        made = await self.call("POST", f"{application}/flows", body, status=201)
        return f"{application}/flows/{made['id']}"

    async def press(self, flow: str, count: int = 1) -> None:
        """Press the button of a workflow so many times."""
        for _ in range(count):
            await self.call("POST", f"{flow}/virtualButton", {"key": "go", "payload": {}})

    async def ended(self, flow: str, count: int = 1) -> None:
        """Wait until so many runs of a workflow have ended."""
        with trio.fail_after(PATIENCE_S):
            while (await self.call("GET", f"{flow}/runs"))["totalCount"] < count:  # noqa: ASYNC110 - as `until`
                await trio.sleep(0.01)


async def neighbours(server: Server, applications: int = APPLICATIONS) -> tuple[Tenant, Tenant]:
    """The greedy user with so many applications, and the quiet one with one."""
    greedy = Tenant(server, (await server.call("GET", "/me"))["id"], server.token)
    await greedy.create(applications)
    id = await server_users.add_user(server.root, QUIET, PASSWORD)
    quiet = Tenant(server, id, await server.log_in(QUIET))
    await quiet.create()
    return greedy, quiet
