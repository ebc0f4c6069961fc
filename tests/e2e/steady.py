"""Clients that stay with one process of a divided server and call its own applications, while others are killed.

What such a client calls needs nobody else, so none of its calls may fail unless its own process was killed. Owns what
they call, and what they have been told. Does not own who is killed (`test_partition_kills.py`).
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import trio

from tests.e2e.divided import PARTITIONS, At, House, connected, house_in
from tests.e2e.server_process import ServerProcess, processes
from tests.patience import PATIENCE_S
from trunkline.bench.errors import WireError


class Kills:
    """Which processes of a server were killed, and when each of them was away."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.ids: set[int] = set()
        self.away: set[str] = set()
        """The partitions whose process is not there."""

    def kill(self, name: str) -> int:
        """Kill a process; returns its id."""
        id = processes(self.server)[name]
        self.ids.add(id)
        self.away.add(name)
        os.kill(id, signal.SIGKILL)
        return id


class Steady:
    """A client at the process of its house."""

    def __init__(self, kills: Kills, name: str, house: House, user: str) -> None:
        self.name = name
        self.house = house
        self.user = user
        self.calls = 0
        self.beside = 0
        """Calls that were answered while another process was away."""
        self.failed: list[str] = []
        self.sent = self.stored = 0
        """States, with their times as their numbers: those that were sent, and those that were acknowledged."""
        self.patched = 0
        self.longest_s = 0.0
        """The longest time between two answers: over a kill, until the process serves again."""
        self._last_s = trio.current_time()
        self._kills = kills

    async def run(self) -> None:
        """Call until cancelled. A connection ends with its process; then another one is opened."""
        while True:
            id, at = await self._connected()
            async with at:
                try:
                    while True:
                        await self._call(at)
                        self._answered(id)
                except WireError as problem:
                    if id not in self._kills.ids:
                        self.failed.append(str(problem))

    def _answered(self, id: int) -> None:
        now_s = trio.current_time()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._last_s = now_s
        if id not in self._kills.ids:
            self._kills.away.discard(self.name)

    async def _connected(self) -> tuple[int, At]:
        while True:
            id = processes(self._kills.server).get(self.name, 0)
            try:
                at = await connected(self._kills.server)
            except WireError:
                continue  # the process that had accepted it was killed
            if at.process == self.name and id == processes(self._kills.server).get(self.name):
                return id, at
            at.connection.close()
            await trio.lowlevel.checkpoint()

    async def _call(self, at: At) -> None:
        device, token = self.house.device, self.house.token
        number = self.calls % 6
        if number < 3:
            self.sent += 1
            body = {"time": 1_700_000_000_000 + self.sent, "data": {"temp": self.sent}}
            await self._made(at, "POST", f"{device}/state", body, token)
            self.stored += 1
        elif number == 3:
            await self._made(at, "GET", f"{device}/compositeState", None, token)
        elif number == 4:
            await self._made(at, "POST", f"{device}/command", {"name": "go"}, token)
        else:
            await self._made(at, "PATCH", device, {"description": str(self.calls)}, self.user)
            self.patched += 1

    async def _made(self, at: At, method: str, path: str, body: Any, token: str) -> None:
        others = self._kills.away - {self.name}
        answer = await at.send(method, path, body, token=token)
        if answer.status != 200:
            self.failed.append(f"{method} {path}: {answer.status} {answer.body!r}")
        self.calls += 1
        self.beside += bool(others & self._kills.away)

    async def check(self, server: ServerProcess) -> None:
        """What was acknowledged is stored once, and nothing else that was not sent."""
        counts = await server.call("GET", f"{self.house.device}/payloadCounts")
        assert self.stored <= counts["deviceState"] <= self.sent, (self.stored, counts, self.sent)
        assert not self.failed, (self.name, len(self.failed), self.failed[:3])


async def steady_clients(kills: Kills) -> tuple[str, list[Steady]]:
    """A client at each process, with a house of an organization, whose changes are audited; returns its path too."""
    server = kills.server
    houses = {name: await house_in(server, name, f"steady in {name}") for name in PARTITIONS}
    organization = await server.organization()
    ids = [house.application.rpartition("/")[2] for house in houses.values()]
    owner = {"destinationId": organization.rpartition("/")[2], "destinationType": "organization"}
    await server.call("PATCH", "/me/transferResources", {**owner, "applicationIds": ids, "strict": True})
    return organization, [Steady(kills, name, house, server.token) for name, house in houses.items()]


async def audited(server: ServerProcess, organization: str) -> int:
    """How many changes of devices the audit log has."""
    query = {"auditLogFilter": json.dumps({"responseCode": [200]}), "perPage": 1}
    listed = await server.call("GET", f"{organization}/audit-logs", params=query)
    return int(listed["totalCount"])


async def answered_again(kills: Kills, name: str, before: int, path: str) -> None:
    """Wait until a process that was killed is there again, and answers for its application."""
    with trio.fail_after(PATIENCE_S):
        while processes(kills.server).get(name, before) == before:
            await trio.lowlevel.checkpoint()
        while True:
            try:
                async with await connected(kills.server) as at:
                    if (await at.send("GET", path)).status == 200:
                        break
            except WireError:
                continue
    kills.away.discard(name)
