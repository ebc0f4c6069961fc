"""Applications that are made, renamed, given to another owner and deleted, and names that only one of them may have.

They are in all partitions of the server, and a list shows those of all.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.machine import place_of
from tests.simulation.model import Book, Broken, Change
from tests.simulation.part import Part
from tests.simulation.site import check_found
from tests.simulation.world import World

APPLICATIONS_MAX: Final = 6
SLUGS: Final = ("barn", "stable", "coop", "shed")
_NONE: Final = "no slug"
_TAKEN: Final = "is taken by another application"


class Applications:
    """What is known of them, by id. `strays` are creations that had no answer, so nobody knows the ids."""

    def __init__(self) -> None:
        self.names = Book("applications")
        self.slugs = Book("slugs")
        self.owners = Book("owners")
        self.strays = 0
        self.me = ""
        self.org = ""

    def one(self, chance: Random) -> str | None:
        """One that is there for sure, and that nobody changes."""
        books = (self.names, self.slugs, self.owners)
        sure = [id for id in self.names.sure() if all(book.thing(id).is_sure for book in books)]
        return chance.choice(sure) if sure else None

    def add(self, id: str, name: str) -> None:
        """One was made."""
        for book, state in ((self.names, name), (self.slugs, _NONE), (self.owners, self.me)):
            Change([(book, id, state)]).stored()


async def create(world: World, chance: Random) -> None:
    all = world.of(Applications)
    if len(all.names.sure()) >= APPLICATIONS_MAX:
        return
    name = f"application {world.unique()}"
    all.strays += 1  # until somebody is told its id
    answer = await world.call(
        "POST", "/applications", {"name": name}, chance=chance, needs=range(world.partitions)
    )
    if (
        answer is None or answer.status >= 500
    ):  # it may be there, as where only its audit entry was not stored
        return
    all.strays -= 1
    if answer.status == 201:
        all.add(answer.body["applicationId"], name)
    else:
        raise Broken(f"an application is {answer.status}: {answer.body}")


async def rename(world: World, chance: Random) -> None:
    all = world.of(Applications)
    id = all.one(chance)
    if id is not None:
        name = f"application {world.unique()}"
        change = Change([(all.names, id, name)])
        with all.names.watched() as names:
            answer = await world.change(change, "PATCH", f"/applications/{id}", {"name": name}, chance=chance)
        if answer is not None and answer.status < 500:
            check_found(f"/applications/{id}", answer, names.allowed(id))


async def delete(world: World, chance: Random) -> None:
    all = world.of(Applications)
    id = all.one(chance)
    if id is not None and chance.random() < 0.5:
        change = Change([(all.names, id, None), (all.slugs, id, None), (all.owners, id, None)])
        await world.change(change, "DELETE", f"/applications/{id}", chance=chance)


async def claim(world: World, chance: Random) -> None:
    """Give an application a name that only one on the server may have. Two often want the same."""
    all = world.of(Applications)
    id = all.one(chance)
    if id is None:
        return
    slug = chance.choice(SLUGS)
    change = Change([(all.slugs, id, slug)])
    began_s = world.virtual.now_s
    place = place_of(world, id)
    world.claims[place] = float("inf")
    with all.names.watched() as names, all.slugs.watched() as slugs:
        answer = await world.change(
            change, "PATCH", f"/applications/{id}", {"endpointSlug": slug}, chance=chance
        )
    world.claims[place] = world.virtual.now_s
    if answer is None or answer.status >= 500 or None in names.allowed(id):
        return
    others = [slugs.allowed(each) for each in all.slugs.things if each != id]
    if answer.status == 400 and _TAKEN in answer.body["message"]:
        if not any(slug in each for each in others):
            raise Broken(f"{slug} is refused as taken, and no application can have it since {began_s:.3f}")
        world.reached["a name of the server was taken"] += 1
    elif answer.status >= 300:
        raise Broken(f"{slug} for {id} is {answer.status}: {answer.body}")
    elif any(each == {slug} for each in others):
        raise Broken(f"{slug} was given to {id}, and another application has it")


async def give(world: World, chance: Random) -> None:
    """Give one or two applications to the organization, or back. Those of several partitions are no one change."""
    all = world.of(Applications)
    source, target = chance.choice(((all.me, all.org), (all.org, all.me)))
    owned = [
        id for id in all.names.sure() if all.owners.thing(id).is_sure and all.owners.thing(id).state == source
    ]
    if not owned:
        return
    given = chance.sample(owned, min(len(owned), chance.choice((1, 2))))
    changes = [Change([(all.owners, id, target)]) for id in given]
    path = "/me/transferResources" if source == all.me else f"/orgs/{all.org}/transferResources"
    body = {
        "destinationId": target,
        "destinationType": "user" if target == all.me else "organization",
        "applicationIds": given,
        "strict": False,
    }
    answer = None
    with all.names.watched() as names:
        try:
            needs = {place_of(world, id) for id in given}
            answer = await world.call("PATCH", path, body, chance=chance, needs=needs)
        finally:
            if answer is None:
                world.unanswered += changes
    if answer is None:
        return
    passed = answer.status < 300
    if answer.status >= 500 or not (passed or any(None in names.allowed(id) for id in given)):
        if answer.status < 500:
            raise Broken(f"{path} of {given} is {answer.status}: {answer.body}")
        world.unanswered += changes  # what was given was given back, if that was possible
        return
    for id, change in zip(given, changes, strict=True):
        if None in names.allowed(id):
            world.unanswered.append(change)  # it was given before it was deleted, or was gone
        elif passed:
            change.stored()
        else:
            change.refused()
    if passed and len({place_of(world, id) for id in given}) > 1:
        world.reached["applications of several partitions were given"] += 1


async def read(world: World, chance: Random) -> None:
    await _list(world, chance)


async def _list(world: World, chance: Random | None = None) -> list[str] | None:
    """The ids of those that nobody knows."""
    all = world.of(Applications)
    with all.names.watched() as names:
        answer = await world.call("GET", "/applications?perPage=1000", chance=chance)
    if answer is None or answer.status >= 500:
        return None
    found = {each["applicationId"]: each["name"] for each in answer.body["items"]}
    if len(found) < len(answer.body["items"]):
        raise Broken("applications: one is listed twice")
    if answer.body["totalCount"] != len(found):
        raise Broken(f"applications: {answer.body['totalCount']} are counted, {len(found)} listed")
    known = {id: name for id, name in found.items() if id in all.names.things}
    names.check(known)
    return [id for id, name in found.items() if id not in known and name.startswith("application ")]


async def look(world: World) -> None:
    all = world.of(Applications)
    strays = await _list(world)
    if strays is None or len(strays) > all.strays:
        raise Broken(
            f"applications: {strays} are there that no answer has named, of {all.strays} without one"
        )
    all.strays = 0
    for id in [*all.names.things, *strays]:
        books = (all.names, all.slugs, all.owners)
        with books[0].watched() as names, books[1].watched() as slugs, books[2].watched() as owners:
            answer = await world.call("GET", f"/applications/{id}")
        assert answer is not None
        if id in strays:
            all.add(id, answer.body["name"])
        elif check_found(f"/applications/{id}", answer, names.allowed(id)):
            names.check({id: answer.body["name"]}, [id])
            slugs.check({id: answer.body.get("endpointSlug") or _NONE}, [id])
            owners.check({id: answer.body["ownerId"]}, [id])
        else:
            for window in (names, slugs, owners):
                window.check({}, [id])
    taken = [thing.state for thing in all.slugs.things.values() if thing.is_sure and thing.state in SLUGS]
    if len(set(taken)) < len(taken):
        raise Broken(f"a name of the server was given twice: {taken}")


async def prepare(world: World) -> None:
    all = world.of(Applications)
    answer = await world.call("GET", "/me")
    assert answer is not None
    all.me = answer.body["id"]
    answer = await world.call("POST", "/orgs", {"name": "owner"})
    assert answer is not None
    all.org = answer.body["orgId"]
    for _ in range(world.partitions):
        await create(world, Random(1))


PART: Final = Part(
    prepare,
    {create: 3, rename: 3, delete: 2, claim: 5, give: 3, read: 5},
    look,
    divided=True,
    undivided=False,
)
