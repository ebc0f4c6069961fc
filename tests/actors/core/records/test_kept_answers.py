"""How answers of calls with an Idempotency-Key are kept: bounds, expiry, removal and verification."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.house import House, running_house
from trunkline.actors.core.records.kept_answers import (
    KeptAnswer,
    answer_problems,
    find_answer,
    keep_answer,
    oldest_kept_ms,
    prefix_of,
)
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, PayloadTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.messages import DeleteDevice, SendState, StateOrStates
from trunkline.actors.maintenance.retention import Retention
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.batch import Batch

KEYS_MAX, BYTES_MAX, DAY_S = 5, 1000, 86_400
LIMITS = Limits.off().override(
    {
        "idempotency_keys_max": KEYS_MAX,
        "idempotency_bytes_max": BYTES_MAX,
        "removed_entries_max": 3,
        "retention_pause_s": 0.0001,
    }
)
REPORT = msgspec.convert({"data": {"a": 1}}, StateOrStates)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        yield house
        assert not problems(house)


def problems(house: House) -> list[str]:
    with house.system.store.snapshot() as snapshot:
        return list(answer_problems(snapshot))


async def keep(house: House, device: bytes, key: str, body: bytes = b"", report: Any = REPORT) -> int:
    """Report with a key; returns how many other keys were forgotten for it."""
    forgotten = []

    def stamp(actor: Actor, _value: Any) -> None:
        answer = KeptAnswer(b"request", 201, [(b"etag", b'"x"')], body)
        forgotten.append(keep_answer(actor.system, actor.writes(), actor.ref, key.encode(), answer))

    await house.system.ask(house.ref(device), SendState(body=report), stamp)
    return sum(forgotten)


def found(house: House, device: bytes, key: str) -> KeptAnswer | None:
    oldest_ms = oldest_kept_ms(house.system.limits, house.clock.wall_ms())
    with house.system.store.snapshot() as snapshot:
        return find_answer(snapshot.get, house.ref(device), key.encode(), oldest_ms)


def known(house: House, device: bytes) -> list[str]:
    return [key for key in map(str, range(100)) if found(house, device, key)]


def entries(house: House) -> int:
    with house.system.store.snapshot() as snapshot:
        return snapshot.count(keys.ANSWERS, b"", None)


async def removed(house: House) -> int:
    retention = house.system.component(Retention)
    before = retention.removed["answer"]
    await retention.remove_expired()
    return retention.removed["answer"] - before


async def test_an_answer_is_stored_with_the_effect_or_not_at_all(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1", b"body")
    assert found(house, device, "1") == KeptAnswer(b"request", 201, [(b"etag", b'"x"')], b"body")
    assert len(await house.states(device)) == 1
    house.clock.pass_s(1)
    with pytest.raises(Invalid):
        await keep(house, device, "2", report=msgspec.convert({"data": {"a": "no number"}}, StateOrStates))
    with pytest.raises(PayloadTooLarge, match="and at most 1000 are kept; send less in one call"):
        await keep(house, device, "3", b"x" * BYTES_MAX)
    assert known(house, device) == ["1"]
    assert len(await house.states(device)) == 1


async def test_an_empty_report_has_an_answer_too(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1", report=[])
    assert known(house, device) == ["1"]


async def test_keys_are_apart_by_owner(house: House) -> None:
    device, other = await house.device(), await house.device()
    await keep(house, device, "1")
    assert found(house, other, "1") is None


async def test_the_oldest_key_makes_room_for_the_newest(house: House) -> None:
    device, other = await house.device(), await house.device()
    await keep(house, other, "0")
    forgotten = [await keep(house, device, str(number)) for number in range(8)]
    assert forgotten == [0] * KEYS_MAX + [1, 1, 1]
    assert known(house, device) == ["3", "4", "5", "6", "7"]
    assert known(house, other) == ["0"]
    assert entries(house) == 2 * KEYS_MAX + 1 + 3


async def test_answers_have_a_bound_in_bytes(house: House) -> None:
    device = await house.device()
    for number in range(3):
        assert await keep(house, device, str(number), b"x" * 200) == 0
    assert await keep(house, device, "3", b"x" * 700) == 2
    assert known(house, device) == ["2", "3"]
    assert await keep(house, device, "4", b"x" * 900) == 2
    assert known(house, device) == ["4"]


async def test_a_key_that_has_expired_may_be_used_again(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1", b"first")
    await keep(house, device, "2", b"x" * 600)
    house.clock.pass_s(DAY_S)
    assert known(house, device) == ["1", "2"]
    house.clock.pass_s(0.001)
    assert known(house, device) == []
    assert await keep(house, device, "2", b"x" * 900) == 0, "what has expired is not forgotten"
    assert found(house, device, "2") == KeptAnswer(b"request", 201, [(b"etag", b'"x"')], b"x" * 900)
    assert known(house, device) == ["2"]
    assert not problems(house)


async def test_the_clock_may_be_set_back(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1")
    house.clock.pass_s(-3600)
    for number in range(2, 9):
        await keep(house, device, str(number))
    assert known(house, device) == ["4", "5", "6", "7", "8"]


async def test_expired_answers_are_removed_in_the_background(house: House) -> None:
    devices = [await house.device() for _ in range(3)]
    for device in devices:
        for number in range(4):
            await keep(house, device, str(number))
    house.clock.pass_s(3600)
    await keep(house, devices[0], "4")
    assert await removed(house) == 0
    house.clock.pass_s(DAY_S - 3600)
    assert await removed(house) == 0
    house.clock.pass_s(3600 - 1)
    assert await removed(house) == 12
    assert known(house, devices[0]) == ["4"]
    assert entries(house) == 3
    house.clock.pass_s(3600)
    assert await removed(house) == 1
    assert entries(house) == 0


async def test_those_of_a_deleted_device_are_removed_too(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1")
    await house.ask(device, DeleteDevice())
    house.clock.pass_s(DAY_S + 1)
    assert await removed(house) == 1
    assert entries(house) == 0


async def test_those_of_a_deleted_application_are_swept(house: House) -> None:
    device = await house.device()
    await keep(house, device, "1")
    await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
    while await sweep(house.system):
        pass
    assert entries(house) == 0


@pytest.mark.parametrize("part", ["answer", "number", "head"])
async def test_answers_that_do_not_agree_are_found(tmp_path: Path, part: str) -> None:
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        device = await house.device()
        await keep(house, device, "1")
        assert not problems(house)
        prefix = prefix_of(house.ref(device))
        key = {
            "answer": keys.answer_key(prefix, b"1"),
            "number": keys.answer_number_key(prefix, 0),
            "head": keys.answers_head_key(prefix),
        }[part]
        batch = Batch()
        batch.delete(keys.ANSWERS, key)
        await house.system.journal.submit(batch).wait()
        (problem,) = problems(house)
        assert problem.startswith(f"answers {prefix.hex()}: ")
