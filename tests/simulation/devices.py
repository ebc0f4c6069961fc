"""Devices that report states and get commands, and people who read both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

import trio

from tests.simulation.determinism import START_MS
from tests.simulation.faults import Clock
from tests.simulation.life import Life
from tests.simulation.limits import CALLS, WINDOW_S
from tests.simulation.model import Book, Broken, Change, Throttle, Window
from tests.simulation.part import Action, Part
from tests.simulation.repetitions import Repeatable, Repetitions
from tests.simulation.site import Site, check_found, surely
from tests.simulation.world import World
from trunkline.actors.core.values.timestamps import iso, parse_iso

DAY_MS: Final = 24 * 3_600_000
DEVICES_MAX: Final = 5
TAG: Final = {"key": "kind", "value": "meter"}
ATTRIBUTES: Final = [
    {"name": name, "dataType": kind}
    for name, kind in (("n", "number"), ("heat", "number"), ("text", "string"))
]
HOT, COLD = 40, 20


class Meter:
    """What is known of a device: its states by time, its commands by name."""

    def __init__(self, id: str, path: str) -> None:
        self.id = id
        self.path = path
        self.states = Book(f"states of {id[-4:]}")
        self.commands = Book(f"commands of {id[-4:]}")
        self.sent: list[tuple[str, set[str]]] = []
        """The names of commands, each with those that were acknowledged before it was sent."""
        self.active_s = 0.0
        """When it was created, or may have reported, for the last time."""
        self.sets: int | None = None
        """How often the clock had been set when it was created, or has reported for sure, for the last time."""
        self.stored_ms: int | None = None
        """By the clock: when the last report was sent that was acknowledged."""
        self.past: set[int] = set()
        """The states that came as of the past: nothing that watches the present hears of them."""
        self.forget_throttles()

    def is_active(self, world: World, sent: tuple[int, int] | None) -> None:
        """It was created, or may have reported; `sent` is the clock when an acknowledged report was sent."""
        self.active_s, sets = world.virtual.now_s, world.of(Clock).sets
        if sent is not None:
            self.sets = sets if sets == sent[0] else -1  # nobody knows by which clock it has arrived
            self.stored_ms = sent[1]
        elif self.sets is None:
            self.sets = sets

    def forget_throttles(self) -> None:
        self.throttles = {"state": Throttle(CALLS, WINDOW_S), "command": Throttle(CALLS, WINDOW_S)}


class Fleet:
    """All devices: the records, and what each of them has reported."""

    def __init__(self) -> None:
        self.records = Book("devices")
        self.meters: dict[str, Meter] = {}
        self.life: Life | None = None

    def one(self, chance: Random) -> Meter | None:
        """Any device that is or was there; rather one that is."""
        there = [self.meters[id] for id in self.records.sure() if id in self.meters]
        known = there if there and chance.random() < 0.9 else list(self.meters.values())
        return chance.choice(known) if known else None


# What is done.


async def create_device(world: World, chance: Random) -> None:
    fleet, site = world.of(Fleet), world.of(Site)
    if len(fleet.records.sure()) >= DEVICES_MAX:
        return
    body = {"name": f"meter {world.unique()}", "tags": [TAG], "attributes": ATTRIBUTES}
    site.strays += 1  # until somebody is told its id
    answer = await world.call("POST", f"{site.path}/devices", body)
    site.strays -= answer is not None and answer.status < 500  # it may be there, without its audit entry
    if answer is not None and answer.status == 201:
        id = answer.body["deviceId"]
        fleet.meters[id] = Meter(id, f"{site.path}/devices/{id}")
        fleet.meters[id].is_active(world, None)
        Change([(fleet.records, id, body["name"])]).stored()


async def rename_device(world: World, chance: Random) -> None:
    fleet = world.of(Fleet)
    sure = list(fleet.records.sure())
    if sure:
        meter, name = fleet.meters[chance.choice(sure)], f"meter {world.unique()}"
        change = Change([(fleet.records, meter.id, name)])
        await world.change(change, "PATCH", meter.path, {"name": name}, chance=chance)


async def delete_device(world: World, chance: Random) -> None:
    fleet = world.of(Fleet)
    sure = list(fleet.records.sure())
    if sure and chance.random() < 0.3:
        meter = fleet.meters[chance.choice(sure)]
        await world.change(Change([(fleet.records, meter.id, None)]), "DELETE", meter.path, chance=chance)


async def report(world: World, chance: Random) -> None:
    """A report, or as many at once as a throttle lets pass, and more."""
    meter = world.of(Fleet).one(chance)
    if meter is None:
        return
    async with trio.open_nursery() as callers:
        for _ in range(CALLS + 2 if chance.random() < 0.04 else 1):
            callers.start_soon(_report, world, meter, Random(chance.getrandbits(64)))


async def _report(world: World, meter: Meter, chance: Random) -> None:
    """One state, or several in one call, each with a time of its own."""
    numbers = [world.unique() for _ in range(chance.choice((1, 1, 1, 2, 5)))]
    body: Any = [_state(number, chance) for number in numbers]
    change = Change([(meter.states, START_MS + number, number) for number in numbers])
    await _throttled(world, meter, "state", change, body[0] if len(body) == 1 else body, chance)


async def command(world: World, chance: Random) -> None:
    meter = world.of(Fleet).one(chance)
    if meter is None:
        return
    name = f"c{world.unique()}"
    meter.sent.append((name, set(meter.commands.sure())))
    change = Change([(meter.commands, name, name)])
    await _throttled(world, meter, "command", change, {"name": name, "payload": {"by": name}}, chance)


def heat_of(number: int) -> int:
    """The heat of a state follows from its number, so the model need not know it."""
    return HOT if number * 7919 % 11 < 5 else COLD


def _state(number: int, chance: Random) -> dict[str, Any]:
    data: dict[str, Any] = {"n": number, "heat": heat_of(number)}
    if chance.random() < 0.3:
        data["text"] = chance.choice("xyz") * chance.choice((1, 40, 400))
    return {"time": iso(START_MS + number), "data": data}


async def command_many(world: World, chance: Random) -> None:
    """A command to several devices: to all of them or to none."""
    fleet, site = world.of(Fleet), world.of(Site)
    sure = list(fleet.records.sure())
    if len(sure) < 2:
        return
    meters = [fleet.meters[id] for id in chance.sample(sure, chance.randint(2, len(sure)))]
    name = f"c{world.unique()}"
    for meter in meters:
        meter.sent.append((name, set(meter.commands.sure())))
    change = Change([(meter.commands, name, name) for meter in meters])
    body = {"name": name, "deviceIds": [meter.id for meter in meters]}
    throttles = [meter.throttles["command"] for meter in meters]
    passings = [each.begin(world.virtual.monotonic_s()) for each in throttles]
    with fleet.records.watched() as records:
        answer = await world.change(change, "POST", f"{site.path}/devices/command", body, chance=chance)
    passed = None if answer is None or answer.status in (400, 404) else answer.status != 429
    counts = [
        throttle.end(passing, world.virtual.monotonic_s(), passed=passed)
        for throttle, passing in zip(throttles, passings, strict=True)
    ]
    if answer is None or answer.status >= 500:
        return
    if answer.status == 429 and all(most < CALLS for _, most in counts):
        raise Broken(f"a command to {len(meters)} devices is 429, and each may have one more")
    if answer.status == 200 and any(least >= CALLS for least, _ in counts):
        raise Broken(f"a command to {len(meters)} devices passed, and not each may have one more")
    gone = any(None in records.allowed(meter.id) for meter in meters)
    if answer.status not in (200, 429) and not (gone and answer.status in (400, 404)):
        raise Broken(f"a command to {len(meters)} devices is {answer.status}: {answer.body}")
    world.reached["a command to many"] += answer.status == 200


async def _throttled(
    world: World, meter: Meter, what: str, change: Change, body: Any, chance: Random
) -> None:
    """A call to a device that counts against a throttle; one in four has a key, to be repeated."""
    key = {"idempotency-key": f'"{what} {world.unique()}"'} if chance.random() < 0.25 else None
    throttle, path = meter.throttles[what], f"{meter.path}/{what}"
    passing, sent = throttle.begin(world.virtual.monotonic_s()), world.of(Clock).read(world)
    with world.of(Fleet).records.watched() as records:
        answer = await world.change(change, "POST", path, body, headers=key, chance=chance)
    # What is refused because the device is being deleted may have passed the throttle before.
    passed = None if answer is None or answer.status == 404 else answer.status not in (401, 429)
    least, most = throttle.end(passing, world.virtual.monotonic_s(), passed=passed)
    if key is not None:
        raw = answer.raw if answer is not None and answer.status == 200 else None
        world.of(Repetitions).made.append(
            Repeatable(
                change,
                path,
                body,
                key,
                lambda: meter.throttles[what],
                raw,
                lambda: meter.is_active(world, None),
            )
        )
    if what == "state":
        meter.is_active(world, sent if answer is not None and answer.status == 200 else None)
    if answer is None:
        return
    check_found(meter.path, answer, records.allowed(meter.id))
    if answer.status == 429:
        world.reached["a throttle"] += 1
        if most < CALLS:
            raise Broken(f"{path} is 429 after at most {most} calls, of which {CALLS} may pass")
    elif passed and least >= CALLS:
        raise Broken(f"{path} is {answer.status} after {least} calls, of which {CALLS} may pass")
    elif answer.status == 200:
        left = int(answer.headers["ratelimit"].partition("r=")[2].partition(";")[0])
        if not least <= CALLS - left - 1 <= most:
            raise Broken(f"{path} says that {left} calls are left, after {least} to {most} and this one")


# What is read.


async def read_states(world: World, chance: Random) -> None:
    meter = world.of(Fleet).one(chance)
    if meter is not None:
        await _read(world, meter, chance)


async def read_commands(world: World, chance: Random) -> None:
    meter = world.of(Fleet).one(chance)
    if meter is not None:
        await commands_of(world, meter, chance)


async def _read(world: World, meter: Meter, chance: Random | None = None) -> None:
    with world.of(Fleet).records.watched() as records, meter.states.watched() as window:
        answer = await world.call("GET", f"{meter.path}/state?limit=1000&sortDirection=asc", chance=chance)
    if answer is None or not check_found(meter.path, answer, records.allowed(meter.id)):
        return
    times = [parse_iso(each["time"]) for each in answer.body]
    if times != sorted(set(times)):
        raise Broken(f"{meter.path}/state is not in order, or shows a time twice")
    _check(
        records,
        meter.id,
        window,
        {time: each["data"]["n"] for time, each in zip(times, answer.body, strict=True)},
    )


async def commands_of(world: World, meter: Meter, chance: Random | None = None) -> list[str]:
    """The names of the commands of a device, in their order, held against the model."""
    with world.of(Fleet).records.watched() as records, meter.commands.watched() as window:
        answer = await world.call("GET", f"{meter.path}/command?limit=1000&sortDirection=asc", chance=chance)
    if answer is None or not check_found(meter.path, answer, records.allowed(meter.id)):
        return []
    names = [each["name"] for each in answer.body]
    places = {name: place for place, name in enumerate(names)}
    if len(places) < len(names):
        raise Broken(f"{meter.path}/command shows a command twice: {names}")
    _check(records, meter.id, window, {name: name for name in names})
    for name, earlier in meter.sent:
        late = [each for each in earlier if name in places and places.get(each, -1) > places[name]]
        if late:
            raise Broken(
                f"{meter.path}: {name} was sent after {late} were acknowledged, and stands before them"
            )
    return names


def _check(records: Window, id: str, window: Window, found: Mapping[Any, Any]) -> None:
    """Hold what was read of a device against the model. What is being deleted need not be read to its end."""
    if None not in records.allowed(id):
        window.check(found)


async def look(world: World) -> None:
    """At all devices: records, history, composite state, counts, commands."""
    fleet, site = world.of(Fleet), world.of(Site)
    if world.life is not fleet.life:
        fleet.life = world.life
        for meter in fleet.meters.values():
            meter.forget_throttles()  # as does the server
    await _look_at_records(world, fleet, site)
    for meter in fleet.meters.values():
        if not surely(fleet.records, meter.id):
            answer = await world.call("GET", meter.path)
            assert answer is not None
            check_found(meter.path, answer, {None})
            continue
        await _read(world, meter)
        await commands_of(world, meter)
        await _look_at_sums(world, meter)


def _strays(world: World, path: str, body: Any) -> list[Any]:
    """The states and commands in an answer that nobody has sent to this device."""
    meter = world.of(Fleet).meters.get(path.partition("/devices/")[2][:24])
    if meter is None:
        return []
    if path.partition("?")[0].endswith("/command"):
        return [each for each in body if each["name"] not in meter.commands.things]
    times, found = meter.states.things, [(parse_iso(each["time"]), each["data"]["n"]) for each in body]
    return [(time, n) for time, n in found if time not in times or time != START_MS + n]


async def _look_at_records(world: World, fleet: Fleet, site: Site) -> None:
    with fleet.records.watched() as window:
        answer = await world.call("GET", f"{site.path}/devices?perPage=1000")
    assert answer is not None
    found = {each["deviceId"]: each["name"] for each in answer.body["items"]}
    if answer.body["totalCount"] != len(found):
        raise Broken(f"devices: {len(found)} are listed, and {answer.body['totalCount']} counted")
    strays = [id for id in found if id not in fleet.meters]
    if len(strays) > site.strays:
        raise Broken(
            f"devices: {len(strays)} are there that no answer has named; {site.strays} calls had no answer"
        )
    for id in strays:
        fleet.meters[id] = Meter(id, f"{site.path}/devices/{id}")
        fleet.meters[id].is_active(world, None)
        Change([(fleet.records, id, found[id])]).stored()
    site.strays = 0
    window.check(
        {id: name for id, name in found.items() if id not in strays},
        [id for id in fleet.meters if id not in strays],
    )


async def _look_at_sums(world: World, meter: Meter) -> None:
    """The composite state is the newest, and as many states are counted as are there.

    A device with a link may send again what it has, also now: this may be there or not.
    """
    with meter.states.watched() as states, meter.commands.watched() as commands:
        composite = await world.call("GET", f"{meter.path}/compositeState")
        counts = await world.call(
            "GET", f"{meter.path}/payloadCounts?start={START_MS - DAY_MS}&end={START_MS + 30 * DAY_MS}"
        )
    assert composite is not None
    assert counts is not None
    times, shown = _bounds(meter.states, states), composite.body.get("n")
    newest = max(times.surely, default=None)
    found = None if shown is None else parse_iso(shown["time"])
    if found != newest and (found not in times.perhaps or (newest is not None and found < newest)):
        raise Broken(f"{meter.path}/compositeState shows {shown}; the newest state is of {newest}")
    for field, those in (("deviceState", times), ("deviceCommand", _bounds(meter.commands, commands))):
        least, most = len(those.surely), len(those.perhaps)
        if not least <= counts.body[field] <= most:
            raise Broken(
                f"{meter.path}: {counts.body[field]} are counted as {field}, and {least} to {most} are there"
            )


class _Bounds(NamedTuple):
    """The names of what was there for sure, and of what may have been there, while a window was open."""

    surely: set[Any]
    perhaps: set[Any]


def _bounds(book: Book, window: Window) -> _Bounds:
    allowed = {name: window.allowed(name) for name in book.things}
    return _Bounds(
        {name for name, states in allowed.items() if None not in states},
        {name for name, states in allowed.items() if states != {None}},
    )


async def prepare(world: World) -> None:
    world.strays = partial(_strays, world)
    for _ in range(3):
        await create_device(world, Random(0))


_REPORTS: Final[dict[Action, float]] = {report: 30, command: 14, command_many: 4}
_READS: Final[dict[Action, float]] = {read_states: 8, read_commands: 5}
_CHANGES: Final[dict[Action, float]] = {create_device: 3, rename_device: 3, delete_device: 2}
PART: Final = Part(prepare, {**_REPORTS, **_READS, **_CHANGES}, look, always=True, divided=True)
