"""A device that reports what is nearly too old to be kept: what is older than the limit says goes, and nothing else.

Reads show nothing that is too old, whether it was removed or not; only the newest state stays whatever its age. What
the clock has called too old once may be gone. On the disk, whole blocks of what is too old go within some minutes.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.devices import ATTRIBUTES
from tests.simulation.faults import Clock
from tests.simulation.life import Life
from tests.simulation.limits import KEEP_DAYS
from tests.simulation.machine import place_of
from tests.simulation.model import Book, Broken, Change
from tests.simulation.part import TIMED_FROM, Part
from tests.simulation.world import World
from trunkline.actors.core.values.timestamps import iso, parse_iso
from trunkline.actors.fleet.devices.state.head import Head
from trunkline.store import keys
from trunkline.store.sorted_runs import blocks_of, runs_of

KEEP_MS: Final = KEEP_DAYS * 86_400_000
SPREADS_MS: Final = (30_000, 600_000, 4 * 3_600_000)
"""What is reported is as old as it may be, or by so much older or younger."""
REMOVED_S: Final = 200.0
"""After so long what is too old is not on the disk any more."""


class Archive:
    """The device, and its states by their times. `sent` has how often the clock had been set before each."""

    def __init__(self) -> None:
        self.id = ""
        self.application = ""
        self.path = ""
        self.states = Book("old states")
        self.sent: dict[int, int] = {}
        self.earlier: set[int] = set()
        """Those that were sent in earlier lives: a search that finds nothing too old is repeated when what it has found
        becomes too old, or after a day. It does not await that the newest state, which stays, is the newest no more."""
        self.life: Life | None = None
        self.since_s = 0.0
        """Since when this life has lasted, the clock was not set, and nothing was sent."""
        self.changes = (0, 0)


async def report_old(world: World, chance: Random) -> None:
    archive, spread_ms = world.of(Archive), chance.choice(SPREADS_MS)
    time_ms = world.virtual.wall_ms() - KEEP_MS + chance.randrange(-spread_ms, spread_ms)
    if time_ms not in archive.sent:
        archive.sent[time_ms] = world.of(Clock).sets
        change = Change([(archive.states, time_ms, time_ms)])
        body = {"data": {"n": world.unique()}, "time": iso(time_ms)}
        await world.change(change, "POST", f"{archive.path}/state", body, chance=chance)


async def read_old(world: World, chance: Random) -> None:
    await _read(world, chance)


async def _read(world: World, chance: Random | None = None) -> None:
    archive, clock = world.of(Archive), world.of(Clock)
    sets, before_ms = clock.sets, world.virtual.wall_ms()
    with archive.states.watched() as window:
        path = f"{archive.path}/state?limit=1000&sortDirection=asc&start=1"
        answer = await world.call("GET", path, chance=chance)
    if answer is None or clock.sets != sets:
        return
    found = {parse_iso(each["time"]) for each in answer.body}
    if found - set(archive.sent):
        raise Broken(f"old states: {found - set(archive.sent)} are there, which nobody has sent")
    surely = max((time_ms for time_ms in archive.sent if None not in window.allowed(time_ms)), default=0)
    for time_ms in archive.sent:
        allowed, age_ms = _allowed(world, time_ms, window.allowed(time_ms), before_ms), before_ms - time_ms
        is_newest = len(found) == 1 and time_ms in found and time_ms >= surely
        if (time_ms if time_ms in found else None) not in allowed and not is_newest:
            raise Broken(f"old states: one of {age_ms} ms is {'' if time_ms in found else 'not '}there")


def _allowed(world: World, time_ms: int, stored: set[object], now_ms: int) -> set[object]:
    """What a state may be that was stored or not, by its age now and by what the clock has shown since it was sent."""
    archive, clock = world.of(Archive), world.of(Clock)
    if time_ms < now_ms - KEEP_MS:
        return {None}
    if time_ms < max([*clock.ends[archive.sent[time_ms] :], world.virtual.wall_ms()]) - KEEP_MS:
        world.reached["what was too old is young again"] += 1
        return stored | {None}
    return stored


async def prepare(world: World) -> None:
    archive = world.of(Archive)
    answer = await world.call("POST", "/applications", {"name": "archive"})
    assert answer is not None
    archive.application = answer.body["applicationId"]
    devices = f"/applications/{archive.application}/devices"
    answer = await world.call("POST", devices, {"name": "archive", "attributes": ATTRIBUTES})
    assert answer is not None
    archive.id = answer.body["deviceId"]
    archive.path = f"{devices}/{archive.id}"


async def look(world: World) -> None:
    archive = world.of(Archive)
    await _read(world)
    _look_at_disk(world, archive)
    answer = await world.call("GET", f"{archive.path}/compositeState")
    assert answer is not None
    things = archive.states.things.items()
    possible = {time for time, thing in things if thing.states != {None}}
    newest = max((time for time, thing in things if None not in thing.states), default=None)
    shown = None if "n" not in answer.body else parse_iso(answer.body["n"]["time"])
    if shown != newest and (shown not in possible or (newest is not None and shown < newest)):
        raise Broken(f"old states: the composite state is of {shown}, the newest state of {newest}")


def _look_at_disk(world: World, archive: Archive) -> None:
    """What is too old for some minutes already is removed, but for a block with the newest state."""
    device = bytes.fromhex(archive.id)
    store = world.life.server(place_of(world, archive.application)).system.store
    with store.snapshot(own=True) as snapshot:
        newest_ms = Head.read(snapshot, device).newest_ms
    changes = (world.of(Clock).sets, len(archive.sent))
    if archive.life is not world.life or archive.changes != changes:
        if archive.life is not world.life:
            archive.earlier = {each for each in archive.sent if each != newest_ms}
        archive.life, archive.changes, archive.since_s = world.life, changes, world.virtual.now_s
    if world.virtual.now_s - archive.since_s < REMOVED_S:
        return
    oldest_ms = world.virtual.wall_ms() - KEEP_MS - int(REMOVED_S * 1000)
    with store.snapshot(own=True) as snapshot:
        old = [
            block.last_ms
            for run in runs_of(snapshot)
            for block in blocks_of(snapshot, run.number, device, 0, keys.TIME_MS_MAX)
            if block.last_ms < oldest_ms
            and block.last_ms in archive.earlier
            and not block.first_ms <= newest_ms <= block.last_ms
        ]
    if old:
        raise Broken(f"{len(old)} blocks of states are too old for {REMOVED_S:.0f} s already: {old}")


PART: Final = Part(prepare, {report_old: 8, read_old: 4}, look, divided=True, divided_since=TIMED_FROM)
