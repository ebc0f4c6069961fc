"""The application in which everything is done, and what an answer may say of something that may be gone."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Final

from tests.simulation.life import Answer, Life
from tests.simulation.machine import place_of
from tests.simulation.model import Book, Broken, State
from tests.simulation.part import Part
from tests.simulation.world import World
from trunkline.actors import server_users
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.store.backup import verify

EMAIL: Final = "owner@example.com"
PASSWORD: Final = "Correct-horse-7"
CHECKED: Final = 3
"""The store is checked with each look of this number."""


class Site:
    """The application. `strays` are creations that had no answer, so nobody knows the ids."""

    def __init__(self) -> None:
        self.id = ""
        self.strays = 0
        self.life: Life | None = None
        self.looks = 0
        """How many looks this life has had."""

    @property
    def path(self) -> str:
        return f"/applications/{self.id}"


def surely(book: Book, name: Hashable) -> bool:
    """Whether it is there for sure."""
    return None not in book.thing(name).states


def check_found(path: str, answer: Answer, allowed: set[State]) -> bool:
    """Whether the answer says that something is there. Raises `Broken` where that cannot be."""
    if answer.status in (401, 404):
        if None not in allowed:
            raise Broken(f"{path} is {answer.status}, but it is there")
        return False
    if allowed == {None} and answer.status < 300:
        raise Broken(f"{path} is {answer.status}, but it was deleted")
    return answer.status < 300


async def prepare(world: World) -> None:
    site = world.of(Site)
    await server_users.add_user(world.life.root, EMAIL, PASSWORD)
    answer = await world.call("POST", "/auth/user", {"email": EMAIL, "password": PASSWORD})
    assert answer is not None
    world.token = answer.body["token"]
    others = []
    for _ in range(world.seed // 3 % world.partitions):
        answer = await world.call("POST", "/applications", {"name": "another"})
        assert answer is not None
        others.append(answer.body["applicationId"])
    answer = await world.call("POST", "/applications", {"name": "site"})
    assert answer is not None
    site.id = answer.body["applicationId"]
    if world.partitions > 1:
        world.home = world.life.home = place_of(world, site.id)
        places = [place_of(world, id) for id in (*others, site.id)]
        if len(set(places)) < len(places):
            raise Broken(
                f"new applications are in the partitions {places}, and each should be in another one"
            )


async def nothing(_world: World) -> None:
    """For clients that prepare nothing, or have nothing to look at."""


async def look(world: World) -> None:
    """The check of the whole store finds nothing, and the application is there.

    The check takes as long as all else of a look, so it is made first in a life, with each third look, and at the end.
    """
    site = world.of(Site)
    site.looks = 0 if site.life is not world.life else site.looks + 1
    site.life = world.life
    if world.is_ending or site.looks % CHECKED == 0:
        for server in world.life.servers:
            problems = verify(server.system.store, partial(records.index_keys, KINDS)).problems
            if problems:
                raise Broken(
                    f"the check of the store finds {len(problems)} problems, the first is: {problems[0]}"
                )
    if world.partitions > 1:
        world.home = world.life.home = place_of(world, site.id)
    answer = await world.call("GET", site.path)
    assert answer is not None
    if answer.status != 200:
        raise Broken(f"the application is {answer.status}")


PART: Final = Part(prepare, {}, look, always=True, divided=True)
