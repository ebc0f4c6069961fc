"""What is revoked through one process is refused by the other one with the very next request, and its streams end.

Each is tried many times: with a view of another process that is only a little late, a few of them would be let in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.divided import (
    PARTITIONS,
    ROOT,
    SECOND,
    At,
    House,
    connections,
    divided,
    houses,
    opened_streams,
)
from tests.e2e.server_process import ServerProcess, trunkline
from tests.e2e.test_crash import UNTHROTTLED
from tests.e2e.test_invitations import kept_invitation
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.disk, pytest.mark.slow]

TIMES = 25
WAYS = [(ROOT, SECOND), (SECOND, ROOT)]
"""Revoked at the first one, refused by the second one."""
WORKER, WORKERS_PASSWORD = "worker@example.com", "Worker-horse-7"


class Setting:
    """A server, a house in each partition, and a connection at each process."""

    def __init__(self, server: ServerProcess, known: dict[str, House], found: dict[str, list[At]]) -> None:
        self.server = server
        self.houses = known
        self.at = {name: some[0] for name, some in found.items()}
        self.more = {name: some[1:] for name, some in found.items()}


@asynccontextmanager
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    async with divided(tmp_path / "data", *UNTHROTTLED) as server:
        known = await houses(server)
        async with connections(server, 3) as found:
            yield Setting(server, known, found)
        assert await server.terminate() == 0


async def held(at: At, path: str, token: str) -> None:
    """A call is answered; twice, so that what was found is remembered."""
    for _ in range(2):
        await at.call("GET", path, token=token)


async def ended(body: Any) -> None:
    """Read a stream to its end, which must come before the next comment."""
    with trio.fail_after(PATIENCE_S):
        while piece := await body.read_some():
            assert piece.strip() != b":", piece


async def test_a_token_that_is_revoked_at_one_is_void_at_the_other(tmp_path: Path) -> None:
    """The tokens of a user and of an application, the key of a device, and what a user may see."""
    async with setting(tmp_path) as now:
        for (here, there), house in zip(WAYS, reversed(PARTITIONS), strict=True):
            at, other = now.at[here], now.at[there]
            application, device = now.houses[house].application, now.houses[house].device
            for number in range(TIMES):
                mine = await at.call("POST", "/me/tokens", {"name": f"{number}"})
                api = await at.call(
                    "POST", f"{application}/tokens", {"name": "t", "scope": ["all.Application"]}
                )
                token, key = await now.server.device_token(device)
                for path, bearer in (
                    (f"/me/tokens/{mine['id']}", mine["token"]),
                    (f"{application}/tokens/{api['id']}", api["token"]),
                    (key, token),
                ):
                    for each in (at, other):
                        await held(each, device, bearer)
                    if number % 2:
                        await at.call("DELETE", path)
                    else:
                        await at.call("PATCH", path, {"status": "inactive"})
                    for each in (other, at):
                        await each.call("GET", device, token=bearer, status=401)


async def test_a_role_that_is_taken_at_one_is_gone_at_the_other(tmp_path: Path) -> None:
    """The role of a member in an organization, the membership, and a log-in."""
    async with setting(tmp_path) as now:
        organization = await now.server.organization()
        await now.server.call("PATCH", "/me/transferResources", moved(now.houses, organization))
        id = await worker(now.server)
        for (here, there), house in zip(WAYS, reversed(PARTITIONS), strict=True):
            at, other = now.at[here], now.at[there]
            device = now.houses[house].device
            token = await joined(now.server, organization)
            again = await now.server.log_in(WORKER, WORKERS_PASSWORD)
            state = {"data": {"temp": 1}}
            for _ in range(TIMES):
                for role, status in (("collaborate", 200), ("view", 403)):
                    await at.call("PATCH", f"{organization}/member", {"userId": id, "role": role})
                    await other.call("POST", f"{device}/state", state, token=token, status=status)
                    await at.call("POST", f"{device}/state", state, token=token, status=status)
            await other.call("GET", device, token=again, status=200)
            await at.call("POST", "/me/logout", token=again)
            await other.call("GET", device, token=again, status=401)
            await other.call("GET", device, token=token, status=200)
            await at.call("DELETE", f"{organization}/member?userId={id}")
            await other.call("GET", device, token=token, status=403)


def moved(houses: dict[str, House], organization: str) -> dict[str, Any]:
    """What gives the applications to an organization."""
    ids = [house.application.rpartition("/")[2] for house in houses.values()]
    owner = {"destinationId": organization.rpartition("/")[2], "destinationType": "organization"}
    return {**owner, "applicationIds": ids, "strict": True}


async def worker(server: ServerProcess) -> str:
    """The id of a new user."""
    added = await trunkline(
        *("user", "add", WORKER, "--password", WORKERS_PASSWORD, "--data", str(server.data_dir))
    )
    assert added.returncode == 0, added
    return added.stdout.split()[0]


async def joined(server: ServerProcess, organization: str) -> str:
    """A token of that user, who is a member now."""
    await server.call("POST", f"{organization}/invites", {"email": WORKER, "role": "view"})
    answer = {"email": WORKER, "token": kept_invitation(server.data_dir, WORKER)[1], "accept": True}
    await server.call("POST", "/invites", answer, token="", status=200)
    return await server.log_in(WORKER, WORKERS_PASSWORD)


REVOKED = [(PARTITIONS[0], "token"), *((PARTITIONS[1], what) for what in ("token", "api", "key"))]


async def test_the_streams_of_what_is_revoked_end_at_both(tmp_path: Path) -> None:
    async with setting(tmp_path) as now:
        for house, what in REVOKED:
            for here, there in WAYS:
                path, bearer = await made(now, now.at[here], now.houses[house], what)
                device = now.houses[house].device
                async with connections(now.server, 2, among=(there,)) as found:
                    commands, states = found[there]
                    bodies = [
                        *await opened_streams([commands], f"{device}/commandStream", bearer),
                        *await opened_streams([states], f"{device}/stateStream", bearer),
                    ]
                    await now.at[here].call("DELETE", path)
                    for body in bodies:
                        await ended(body)


async def made(now: Setting, at: At, house: House, what: str) -> tuple[str, str]:
    """A new token or key: its path, and what is sent."""
    if what == "key":
        token, path = await now.server.device_token(house.device)
        return path, token
    if what == "token":
        made = await at.call("POST", "/me/tokens", {"name": "t"})
        return f"/me/tokens/{made['id']}", made["token"]
    made = await at.call("POST", f"{house.application}/tokens", {"name": "t", "scope": ["all.Application"]})
    return f"{house.application}/tokens/{made['id']}", made["token"]
