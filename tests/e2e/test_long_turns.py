"""The longest turns of the event loop, with what they were for: operators of the server list them, and nobody else."""

from __future__ import annotations

import time

import trio

from tests.e2e.conftest import EMAIL, Server
from trunkline.actors import server_users
from trunkline.actors.core.runtime.work import Work, begin, end

PATH = "/server/longTurns"
HELD_MS = 60


async def hold_the_loop(work: Work) -> None:
    """A turn of the event loop that is longer than others, for this work."""
    await trio.lowlevel.checkpoint()
    begin(work)
    until_s = time.thread_time() + HELD_MS / 1000
    while time.thread_time() < until_s:
        pass
    end()
    await trio.lowlevel.checkpoint()


async def test_operators_see_what_held_the_loop_and_for_whom(server: Server) -> None:
    application, owner = await server.application(), (await server.call("GET", "/me"))["id"]
    id = application.rpartition("/")[2]
    await hold_the_loop(Work("call", "device.sendState", bytes.fromhex(id), f"user {owner}"))
    listed = await server.call("GET", PATH)
    assert listed["limitMs"] == 5
    assert 0 < listed["count"] == len(listed["items"]) <= 32
    lengths = [each["durationMs"] for each in listed["items"]]
    assert lengths == sorted(lengths, reverse=True)
    assert HELD_MS <= lengths[0] <= listed["longestMs"]
    assert listed["turns"] > len(lengths)
    (held,) = [each for each in listed["items"] if each["name"] == "device.sendState"]
    assert held["cpuMs"] >= HELD_MS - 2
    assert (held["kind"], held["applicationId"], held["ownerId"]) == ("call", id, owner)
    assert held["bearer"] == f"user {owner}"
    assert held["collectorMs"] <= held["cpuMs"] <= held["durationMs"]


async def test_who_is_no_operator_sees_nothing_of_other_tenants(server: Server) -> None:
    await server_users.add_user(server.root, "eve@example.com", "Other-horse-9")
    eve = await server.log_in("eve@example.com", "Other-horse-9")
    refused = await server.call("GET", PATH, token=eve, status=403)
    assert "`trunkline user operator EMAIL` makes one" in refused["message"]
    await server_users.set_operator(server.root, "eve@example.com", is_operator=True)
    assert (await server.call("GET", PATH, token=eve))["limitMs"] == 5
    await server_users.set_operator(server.root, EMAIL, is_operator=False)
    await server.call("GET", PATH, status=403)
    await server.call("GET", PATH, token="", status=401)
