"""What is made of records and kept to be used again."""

from __future__ import annotations

from weakref import ref

from tests.actors.house import House
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.made import Made
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.platform.applications.messages import (
    ApplicationPost,
    CreateApplication,
    DeleteApplication,
)


class _Thing:
    """Something whose end can be seen."""


async def test_what_was_made_goes_with_its_application(house: House) -> None:
    devices = Made(house.system, DEVICE.name, lambda _id, _doc: _Thing())
    applications = Made(house.system, APPLICATION.name, lambda _id, _doc: _Thing())
    device = await house.device()
    other = Ref("application", ROOT, house.system.ids.new(house.clock.wall_ms()))
    await house.system.ask(other, CreateApplication(body=ApplicationPost(name="other"), user=bytes(12)))
    made = [
        ref(thing)
        for thing in (
            devices.get(house.application, device),
            applications.get(ROOT, house.application),
            applications.get(ROOT, other.id),
        )
        if thing is not None
    ]
    assert [thing() is not None for thing in made] == [True, True, True]
    await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
    assert [thing() is not None for thing in made] == [False, False, True]
