"""What is deleted leaves nothing behind: applications with all they hold, tables, workflows, and devices.

Some minutes after a deletion no key of the store has an id of what was deleted, and no file beside the store either.
What was not deleted has everything that was stored in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from tests.simulation.devices import Fleet
from tests.simulation.faults import Clock
from tests.simulation.life import Answer, Life
from tests.simulation.model import Broken
from tests.simulation.part import TIMED_FROM, Part
from tests.simulation.site import Site, nothing
from tests.simulation.world import World
from trunkline.store import keys

SWEPT_S: Final = 200.0
"""After so long nothing is left."""
HOUSES_MAX: Final = 3
_ROWS: Final = 3
_SEARCHED: Final = tuple(db for db in keys.DATABASES if db not in (keys.ARRIVALS, keys.SEGMENTS))
"""What has arrived stays on the disk until it is flushed."""
_OF_EVENTS: Final = b"event\0"


class House:
    """Something that may be deleted: its path, the ids that it holds, and what must be found of it."""

    def __init__(self, path: str, id: str) -> None:
        self.path = path
        self.ids = [id]
        self.found: dict[str, int] = {}
        """By path of a list, how many it must count."""
        self.asked = False
        self.deleted: tuple[Life, float] | None = None
        """The life in which it was found deleted, and when."""


class Houses:
    """All of them. `gone` are the ids of which nothing is left, as was seen."""

    def __init__(self) -> None:
        self.all: list[House] = []
        self.gone: set[str] = set()
        self.devices: dict[str, tuple[Life, float]] = {}
        self.backs = 0
        self.excused: set[str] = set()


async def build(world: World, chance: Random) -> None:
    """An application with a device, a table, an event, a key, a workflow; or a table, or a workflow, in the first."""
    houses = world.of(Houses)
    if len([each for each in houses.all if each.deleted is None]) >= HOUSES_MAX:
        return
    match chance.randrange(3):
        case 0:
            await _table(world, world.of(Site).path)
        case 1:
            await _flow(world, world.of(Site).path)
        case _:
            await _application(world)


async def _new(world: World, path: str, body: Any, id: str) -> House | None:
    name = path.rpartition("/")[2]
    needs = range(world.partitions) if name == "applications" else ()  # it may be put into any of them
    answer = await world.call("POST", path, body, needs=needs)
    if answer is None or answer.status != 201:
        return None
    house = House(f"/applications/{answer.body[id]}" if name == "applications" else "", answer.body[id])
    if name != "applications":
        house.path = f"{path}/{answer.body[id]}"
    world.of(Houses).all.append(house)
    return house


async def _table(world: World, path: str) -> None:
    columns = [{"name": "v", "dataType": "string", "constraint": "unique"}]
    table = await _new(
        world, f"{path}/data-tables", {"name": "short-lived", "columns": columns}, "dataTableId"
    )
    if table is not None:
        await _fill(world, table, "rows", [{"v": f"{number}"} for number in range(_ROWS)])


async def _flow(world: World, path: str) -> None:
    timer = {"type": "timer", "key": "t", "config": {"seconds": 86_400}, "outputIds": [[]]}
    flow = await _new(world, f"{path}/flows", {"name": "short-lived", "triggers": [timer]}, "flowId")
    if flow is not None:
        await _fill(world, flow, "versions", [{"version": f"v{number}"} for number in range(2)])


async def _application(world: World) -> None:
    house = await _new(world, "/applications", {"name": "short-lived"}, "applicationId")
    if house is None:
        return
    attributes = [{"name": "n", "dataType": "number"}]
    for what, bodies in (
        ("devices", [{"name": f"d{number}", "attributes": attributes} for number in range(2)]),
        ("events", [{"level": "info", "subject": "s"}]),
        ("keys", [{"description": "k"}]),
        (
            "flows",
            [{"name": "f", "triggers": [{"type": "event", "key": "e", "config": {}, "outputIds": [[]]}]}],
        ),
        (
            "data-tables",
            [{"name": "t", "columns": [{"name": "v", "dataType": "string", "constraint": "unique"}]}],
        ),
    ):
        for answer in await _fill(world, house, what, bodies):
            id = next(
                value
                for name, value in answer.body.items()
                if name.endswith("Id") and name != "applicationId"
            )
            house.ids.append(id)
            if what == "devices":
                await world.call("POST", f"{house.path}/devices/{id}/state", {"data": {"n": 1}})
                await world.call("POST", f"{house.path}/devices/{id}/command", {"name": "c"})
            elif what == "data-tables":
                await world.call("POST", f"{house.path}/data-tables/{id}/rows", [{"v": "a"}, {"v": "b"}])


async def _fill(world: World, house: House, what: str, bodies: list[Any]) -> list[Answer]:
    """Create things in it, and note how many were acknowledged."""
    answers = []
    path = f"{house.path}/{what}"
    for body in bodies:
        answer = await world.call("POST", path, body)
        if answer is None:
            house.found.pop(path, None)  # nobody knows whether it is there
            break
        if answer.status == 201:
            answers.append(answer)
            house.found[path] = house.found.get(path, 0) + 1
    return answers


async def demolish(world: World, chance: Random) -> None:
    """Delete one, also while it is still being built."""
    houses = world.of(Houses)
    there = [each for each in houses.all if each.deleted is None]
    if there and chance.random() < 0.5:
        house = chance.choice(there)
        house.asked = True
        answer = await world.call("DELETE", house.path, chance=chance)
        if answer is not None and answer.status < 300:
            house.deleted = world.life, world.virtual.now_s


async def look(world: World) -> None:
    houses, fleet = world.of(Houses), world.of(Fleet)
    for house in houses.all:
        if house.deleted is not None and house.deleted[0] is world.life:
            continue
        answer = await world.call("GET", house.path)
        assert answer is not None
        if answer.status == 404:
            if not house.asked:
                raise Broken(f"{house.path} is not there; nobody has deleted it")
            house.deleted = world.life, world.virtual.now_s
        elif house.deleted is not None:
            raise Broken(f"{house.path} is {answer.status}; it was deleted")
        else:
            await _look_inside(world, house)
    if (
        houses.backs != world.of(Clock).backs
    ):  # what was deleted by a clock that was ahead stays until it is there
        houses.backs = world.of(Clock).backs
        houses.excused |= set(fleet.records.things)
    for id, thing in fleet.records.things.items():
        if thing.states == {None} and houses.devices.get(id, (None,))[0] is not world.life:
            houses.devices[id] = world.life, world.virtual.now_s
    _look_at_disk(world)


async def _look_inside(world: World, house: House) -> None:
    for path, count in house.found.items():
        answer = await world.call("GET", path)
        assert answer is not None
        if answer.body["totalCount"] < count:
            raise Broken(f"{path} counts {answer.body['totalCount']}; {count} were stored")


def _look_at_disk(world: World) -> None:
    """No key has an id of what was deleted some time ago. What was once found to be gone stays gone."""
    houses, due_s = world.of(Houses), world.virtual.now_s - SWEPT_S
    dead: dict[str, tuple[Life, float]] = {}
    if world.restore_days == 0:
        dead |= {id: when for id, when in houses.devices.items() if id not in houses.excused}
    dead |= {id: house.deleted for house in houses.all if house.deleted is not None for id in house.ids}
    steady_s = world.life.steady_since_s
    due = {
        id
        for id, (life, at_s) in dead.items()
        if id in houses.gone or (life is world.life and max(at_s, steady_s) < due_s)
    }
    if not due - houses.gone:
        return
    left = sorted({f"{id} in {db}" for id, db in _found(world, due)})
    if left:
        raise Broken(f"what was deleted {SWEPT_S:.0f} s ago is still in keys: {', '.join(left)}")
    houses.gone |= due
    world.reached["deleted things were swept"] += 1


def _found(world: World, ids: set[str]) -> Iterator[tuple[str, str]]:
    wanted = {id: bytes.fromhex(id) for id in ids}
    for server in world.life.servers:
        with server.system.store.snapshot(own=True) as snapshot:
            for db in _SEARCHED:
                for key in snapshot.keys(db, b"", None):
                    whole = bytes(key)
                    for id, raw in wanted.items():
                        if (raw in whole or id.encode() in whole) and not _is_of_event(whole, raw):
                            yield id, f"{db} {whole!r}"
    folder = world.life.disk.whole
    for id in ids:
        if any(folder.rglob(f"*{id}*")):
            yield id, "the files"


def _is_of_event(key: bytes, id: bytes) -> bool:
    """Events stay when the device is deleted that they name."""
    return key.startswith(_OF_EVENTS) and not key.startswith(_OF_EVENTS + id)


PART: Final = Part(nothing, {build: 3, demolish: 4}, look, divided=True, divided_since=TIMED_FROM)
