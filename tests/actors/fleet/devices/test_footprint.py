"""What an active device costs: the bound on active actors is a bound on memory only if this holds."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.actors.house import House
from trunkline.actors.core.runtime.ref import Ref

DEVICES = 500
ATTRIBUTES = {"temp": "number", "label": "string", "on": "boolean", "level": "number", "mode": "string"}


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


async def report_from(house: House, ids: list[bytes]) -> None:
    values = {"temp": 20.5, "label": "ok", "on": True, "level": 3, "mode": "auto"}
    for id in ids:
        await house.report(bytes(bytearray(id)), {"data": values})


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
async def test_an_active_device_costs_about_two_kilobytes(house: House) -> None:
    ids = [await house.device(ATTRIBUTES, name=f"device {number}") for number in range(DEVICES)]
    await report_from(house, ids)  # what is made once for all is there
    house.forget()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    await report_from(house, ids)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert house.system.active == DEVICES
    assert (after - before) / DEVICES < 2500


async def test_a_device_that_does_not_exist_costs_nothing(house: House) -> None:
    active = house.system.active
    for number in range(100):
        assert house.system.statistics(Ref("device", house.application, number.to_bytes(12, "big"))) is None
    assert house.system.active == active


async def test_devices_that_declare_the_same_keep_one_declaration(house: House) -> None:
    ids = [await house.device(ATTRIBUTES) for _ in range(3)]
    other = await house.device({"temp": "number"})
    house.forget()
    await report_from(house, ids)
    await house.report(other, {"data": {"temp": 1}})
    held = {id(box.actor.attributes) for box in house.system.mailboxes()}  # type: ignore[union-attr]
    assert len(held) == 2
