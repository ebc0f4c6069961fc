"""Reads: the same answer in the loop and beside it, and a refusal where too many wait."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog.testing
import trio
import trio.testing

from tests.actors.house import House
from tests.patience import PATIENCE_S
from trunkline.actors import boot, readers, server_users
from trunkline.actors.catalogue import ACTORS
from trunkline.actors.core.records import listing
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.errors import Crashed, NotFound, Overloaded
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.queries import counts
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.fleet.devices.record.messages import Listen
from trunkline.actors.people.accounts import messages
from trunkline.actors.people.accounts.messages import MeChoice
from trunkline.actors.platform.applications.payload_counts import DayRange
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits


def messages_of(base: type[Message]) -> Iterator[type[Message]]:
    for found in base.__subclasses__():
        if found.__module__.startswith("trunkline."):
            yield found
        yield from messages_of(found)


def test_every_message_is_answered_by_one_actor_or_by_a_reader() -> None:
    for message in set(messages_of(Message)) - {Listen}:  # which only activates
        name = "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()
        asked = [actor for actor in ACTORS if hasattr(actor, name)]
        assert bool(asked) != (message in readers.READERS), message.__name__


def page(house: House, **query: Any) -> read_messages.ListDevices:
    """A page of the devices of the house."""
    converted = msgspec.convert(query, devices.DevicePage)
    return read_messages.ListDevices(application=house.application, query=converted, reach=None)


@pytest.mark.parametrize("query", [{}, {"sortField": "lastUpdated"}, {"filterField": "name", "filter": "p*"}])
async def test_short_and_long_reads_answer_the_same(
    house: House, query: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await house.device(name=f"pump {number}")
    in_the_loop = await house.read(page(house, **query))
    monkeypatch.setattr(listing, "SCAN_INLINE_MAX", 0)
    beside = await house.read(page(house, **query))
    assert in_the_loop == beside
    assert len(beside["items"]) == 5


async def test_a_read_beside_the_loop_sees_what_was_acknowledged(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCAN_INLINE_MAX", 0)
    for number in range(5):
        await house.device(name=f"pump {number}")
        found = await house.read(page(house, filterField="name", filter="pump*"))
        assert found["totalCount"] == number + 1


@pytest.mark.parametrize("inline_max", [0, 1000])
async def test_a_refusal_reaches_the_caller_from_either_place(
    house: House, inline_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCAN_INLINE_MAX", inline_max)
    with pytest.raises(NotFound):
        await house.states(b"x" * 12)


async def test_long_reads_are_bounded(tmp_path: Path, nursery: trio.Nursery) -> None:
    limits = Limits.off().override({"read_threads_max": 1, "read_queue_length_max": 2})
    release = threading.Event()
    with boot.opened(Settings(data_dir=str(tmp_path), limits=limits)) as system:
        await nursery.start(system.run)
        count = counts.CountDevices(user=ROOT, query=DayRange(), now_ms=system.clock.wall_ms())
        try:
            async with trio.open_nursery() as readers_in_line:
                for _ in range(3):
                    readers_in_line.start_soon(system.read, lambda _snapshot: release.wait(30))
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(Overloaded, match="2 reads of this owner wait already") as refusal:
                    await readers.read(system, count)
                assert refusal.value.retry_after_s == 1.0
                # Writes and short reads go on.
                assert await server_users.add_user(system, "a@example.com", "Correct-horse-7")
                assert await readers.read(system, messages.GetMe(user=user_of(system), query=MeChoice()))
                release.set()
        finally:
            release.set()
        assert (await readers.read(system, count))["counts"]


def user_of(system: System) -> bytes:
    return bytes.fromhex(server_users.users(system)[0].id)


async def test_a_store_that_can_not_be_read_is_a_fault_and_is_logged(house: House) -> None:
    device = await house.device()
    with trio.fail_after(PATIENCE_S):  # what works in the background reads the store when it begins
        await trio.testing.wait_all_tasks_blocked()
        while house.system.store.reads:
            await trio.lowlevel.checkpoint()
    house.system.store.close()
    with structlog.testing.capture_logs() as logs, pytest.raises(Crashed, match="is logged"):
        await house.states(device)
    assert [entry["event"] for entry in logs] == ["read failed"]
