"""The disk fails between the commit of a call and that of its entry in the audit log."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from tests.actors.house import House, running_house
from trunkline.actors import server_users
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.request import Request, Response
from trunkline.http.serve import make_dispatcher
from trunkline.limits.settings import Settings
from trunkline.store.errors import StoreLost

EVENT = {"level": "info", "subject": "It is hot"}


class Site:
    """An application of a person, whose calls have entries in the log of this person."""

    def __init__(self, house: House, dispatcher: Dispatcher, user: bytes, application: bytes) -> None:
        self.house = house
        self._dispatcher = dispatcher
        self.application = application.hex()
        self._path = f"/applications/{application.hex()}/events"
        claims = {"typ": "user", "sub": user.hex(), "gen": 0}
        token = dispatcher.tokens.issue(claims, ["all.User"], house.clock.wall_ms(), None)
        self._headers = {b"authorization": f"Bearer {token}".encode(), b"content-type": b"application/json"}

    async def call(self, method: str, path: str, body: Any = None) -> Response:
        raw = b"" if body is None else msgspec.json.encode(body)
        return await self._dispatcher.handle(Request(method, path, b"", self._headers, raw, "127.0.0.1"))

    async def create(self, body: Any = None) -> Response:
        return await self.call("POST", self._path, EVENT if body is None else body)

    async def count(self) -> int:
        found: int = msgspec.json.decode((await self.call("GET", self._path)).body)["totalCount"]
        return found

    async def entries(self, owner: str = "/me") -> list[int]:
        """The status of each call in the log, the oldest first."""
        found = msgspec.json.decode((await self.call("GET", f"{owner}/audit-logs")).body)
        return [entry["responseStatus"] for entry in reversed(found["items"])]

    def fail(self, *commits: int) -> None:
        """Let commits fail, counted from now on; the first one is 1."""
        number = 0

        def sync() -> float:
            nonlocal number
            number += 1
            if number in commits:
                raise OSError(errno.ENOSPC, "told to fail")
            return 0.0

        self.house.system.journal._sync_delay_s = sync


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with running_house(tmp_path / "data") as house:
        user = bytes.fromhex(
            await server_users.add_user(house.system, "owner@example.com", "Correct-horse-7")
        )
        ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
        message = CreateApplication(user=user, body=ApplicationPost(name="site"))
        await house.system.ask(ref, message)
        settings = Settings(data_dir=str(house.system.store.directory.path))
        yield Site(house, make_dispatcher(house.system, settings), user, ref.id)


async def test_a_call_that_is_stored_is_acknowledged_once_its_entry_is_too(
    site: Site, autojump_clock: MockClock
) -> None:
    site.fail(2)
    assert (await site.create()).status == 201
    assert await site.count() == 1
    assert await site.entries() == [201]


async def test_each_entry_of_a_call_is_tried_again(site: Site, autojump_clock: MockClock) -> None:
    """A transfer has an entry in the log of who gives, and one in that of who receives."""
    org = msgspec.json.decode((await site.call("POST", "/orgs", {"name": "farm"})).body)["id"]
    body = {"destinationType": "organization", "destinationId": org, "applicationIds": [site.application]}
    site.fail(2, 4)
    assert (await site.call("PATCH", "/me/transferResources", body)).status == 200
    assert await site.entries() == await site.entries(f"/orgs/{org}") == [200]


async def test_a_call_whose_entry_can_never_be_stored_says_that_it_was_done(
    site: Site, autojump_clock: MockClock
) -> None:
    site.fail(*range(2, 100))
    answer = await site.create()
    assert answer.status == 500, "after 507 a client may repeat its call"
    assert msgspec.json.decode(answer.body)["message"] == (
        "The call was done, but its entry in the audit log could not be stored. Do not repeat it; read what is there."
    )
    assert await site.count() == 1


async def test_a_server_that_cannot_store_any_more_does_not_wait_for_an_entry(
    site: Site, autojump_clock: MockClock
) -> None:
    """Another machine may own the data; the one that ends here must not be held up."""
    journal, commits = site.house.system.journal, 0

    def sync() -> float:
        nonlocal commits
        commits += 1
        if commits == 2:
            journal._lost = StoreLost("told to end")
            raise OSError(errno.EIO, "told to fail")
        return 0.0

    journal._sync_delay_s = sync
    began_s = trio.current_time()
    answer = await site.create()
    assert answer.status == 500
    assert b"The call was done" in answer.body
    assert trio.current_time() == began_s


async def test_a_call_that_is_not_stored_says_so_at_once(site: Site, autojump_clock: MockClock) -> None:
    began_s = trio.current_time()
    site.fail(1)
    answer = await site.create()
    assert answer.status == 507
    assert await site.count() == 0
    assert await site.entries() == [507]
    site.fail(1)
    assert (await site.create({"level": "nothing"})).status == 507, "its refusal has no entry"
    assert trio.current_time() == began_s
