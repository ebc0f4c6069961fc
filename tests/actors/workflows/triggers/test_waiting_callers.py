"""Callers who wait for workflows keep a connection, of which an owner gets at most half."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.actors.house import House, running_house
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.actors.workflows.triggers.replies import Replies
from trunkline.limits.table import Limits


async def application(house: House, user: bytes) -> bytes:
    ref = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
    await house.system.ask(ref, CreateApplication(body=ApplicationPost(name="other"), user=user))
    return ref.id


async def test_callers_of_many_applications_leave_half_of_the_connections(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d", limits=replace(Limits.off(), connections_max=4)) as house:
        one, two, three = [await application(house, b"greedy------") for _ in range(3)]
        quiet = await application(house, b"quiet-------")
        replies = house.system.component(Replies)
        with ExitStack() as waiting:
            for each in (one, two):
                waiting.enter_context(replies.expect_few(each, "id", "address", 1000))
            with pytest.raises(Overloaded, match="2 lasting connections of this owner"):
                waiting.enter_context(replies.expect_few(three, "id", "address", 1000))
            with pytest.raises(Overloaded), replies.expect(three, "other", "address"):
                raise AssertionError
            assert not replies.is_expected(three, "id")
            waiting.enter_context(replies.expect(quiet, "id", "address"))
            assert house.system.lasting.running == 3
        assert house.system.lasting.running == 0
