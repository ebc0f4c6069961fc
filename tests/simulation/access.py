"""Access keys that are revoked, and devices that log in with them."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from tests.simulation.devices import Fleet, Meter
from tests.simulation.model import Book, Broken, Change, State
from tests.simulation.part import Part
from tests.simulation.site import Site
from tests.simulation.world import World

KEYS_MAX: Final = 4


class Login(NamedTuple):
    """A token of a device that has logged in with a key."""

    device: str
    key: str
    token: str


class Keys:
    """The keys that are known, with their secrets; the tokens that were made with them."""

    def __init__(self) -> None:
        self.book = Book("keys")
        self.known: dict[str, tuple[str, str]] = {}
        """By id: the key and its secret."""
        self.logins: list[Login] = []


async def create_key(world: World, chance: Random) -> None:
    keys, site = world.of(Keys), world.of(Site)
    if len(keys.book.sure()) < KEYS_MAX:
        answer = await world.call("POST", f"{site.path}/keys", {"description": "k"})
        if answer is not None and answer.status == 201:
            id = answer.body["applicationKeyId"]
            keys.known[id] = answer.body["key"], answer.body["secret"]
            Change([(keys.book, id, "active")]).stored()


async def set_status(world: World, chance: Random) -> None:
    """Let a key no longer open anything, or let it open again."""
    keys = world.of(Keys)
    sure = list(keys.book.sure())
    if sure:
        await toggle(world, chance.choice(sure), chance)


async def toggle(world: World, id: str, chance: Random) -> None:
    """Give a key the other status."""
    book = world.of(Keys).book
    after = "inactive" if book.thing(id).state == "active" else "active"
    path = f"{world.of(Site).path}/keys/{id}"
    await world.change(Change([(book, id, after)]), "PATCH", path, {"status": after}, chance=chance)


async def delete_key(world: World, chance: Random) -> None:
    keys = world.of(Keys)
    sure = list(keys.book.sure())
    if sure and chance.random() < 0.3:
        id = chance.choice(sure)
        path = f"{world.of(Site).path}/keys/{id}"
        await world.change(Change([(keys.book, id, None)]), "DELETE", path, chance=chance)


async def log_in(world: World, chance: Random) -> None:
    meter = world.of(Fleet).one(chance)
    if meter is not None:
        await log_in_as(world, meter, chance)


async def log_in_as(world: World, meter: Meter, chance: Random) -> None:
    """Log in as a device, with any key."""
    keys, fleet = world.of(Keys), world.of(Fleet)
    if not keys.known:
        return
    id = chance.choice(list(keys.known))
    key, secret = keys.known[id]
    body = {"deviceId": meter.id, "key": key, "secret": secret}
    with keys.book.watched() as opened, fleet.records.watched() as records:
        answer = await world.call("POST", "/auth/device", body, token="", chance=chance)
    if answer is None or answer.status >= 500:
        return
    if _check("a login", answer.status == 200, opened.allowed(id), records.allowed(meter.id)):
        keys.logins.append(Login(meter.id, id, answer.body["token"]))


async def use(world: World, chance: Random) -> None:
    """Call with the token of a device: it opens what its key opens now, and nothing else."""
    keys, fleet = world.of(Keys), world.of(Fleet)
    if not keys.logins:
        return
    login = chance.choice(keys.logins[-8:])
    path = fleet.meters[login.device].path
    with keys.book.watched() as opened, fleet.records.watched() as records:
        answer = await world.call("GET", path, token=login.token, chance=chance)
    if answer is None:
        return
    if not _check(
        f"GET {path}", answer.status == 200, opened.allowed(login.key), records.allowed(login.device)
    ):
        world.reached["a revoked token was refused"] += 1


def _check(what: str, passed: bool, key: set[State], device: set[State]) -> bool:
    """Whether a call passed that needs an active key and a device that is there."""
    if passed and ("active" not in key or device == {None}):
        raise Broken(f"{what} passed, though the key can only be {key} and the device {device}")
    if not passed and key == {"active"} and None not in device:
        raise Broken(f"{what} was refused, though its key is active and its device there")
    return passed


async def prepare(world: World) -> None:
    await create_key(world, Random(0))


async def look(world: World) -> None:
    keys = world.of(Keys)
    with keys.book.watched() as window:
        answer = await world.call("GET", f"{world.of(Site).path}/keys?perPage=1000")
    assert answer is not None
    found = {each["applicationKeyId"]: each["status"] for each in answer.body["items"]}
    window.check({id: status for id, status in found.items() if id in keys.known}, list(keys.known))


PART: Final = Part(
    prepare, {create_key: 1, set_status: 4, delete_key: 1, log_in: 5, use: 10}, look, divided=True
)
