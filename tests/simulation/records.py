"""Rows of a table with a unique column, and events: created alone or many at once, changed, deleted, listed.

Each record has a text of its own, its mark, by which it is known even if its creation had no answer.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.simulation.life import Answer
from tests.simulation.model import Book, Broken, Change, State, Window
from tests.simulation.part import Part
from tests.simulation.repetitions import Repeatable, Repetitions
from tests.simulation.site import Site
from tests.simulation.world import World

COLUMNS: Final = [
    {"name": "mark", "dataType": "string", "constraint": "required"},
    {"name": "value", "dataType": "string", "constraint": "unique"},
]
RECORDS_MAX: Final = 40
_NOT_UNIQUE: Final = "and the column is unique"


class Collection:
    """Records of one sort, by their marks. `values` are those that the changing field may have."""

    title: str
    mark: str
    value: str
    values: tuple[str, ...]
    unique = False
    takes_arrays = False

    def __init__(self) -> None:
        self.path = ""
        self.book = Book(self.title)
        self.ids: dict[str, str] = {}

    def body(self, mark: str, value: str) -> dict[str, Any]:
        return {self.mark: mark, self.value: value}


class Rows(Collection):
    """The rows of a table."""

    title, mark, value = "rows", "mark", "value"
    values = tuple(f"v{number}" for number in range(12))
    unique = takes_arrays = True


class Events(Collection):
    """The events of the application."""

    title, mark, value = "events", "subject", "state"
    values = ("new", "acknowledged", "resolved")

    def body(self, mark: str, value: str) -> dict[str, Any]:
        return {"level": "info", **super().body(mark, value)}


ALL: Final = (Rows, Events)


async def create(world: World, chance: Random) -> None:
    """One record, or several in an array: all of them or none; some with a key, to be repeated."""
    all = world.of(chance.choice(ALL))
    if len(all.book.sure()) >= RECORDS_MAX or not all.book.takes_new:
        return
    count = chance.choice((1, 1, 2, 3)) if all.takes_arrays else 1
    made = [(f"{all.title} {world.unique()}", chance.choice(all.values)) for _ in range(count)]
    body: Any = [all.body(mark, value) for mark, value in made]
    body = body[0] if count == 1 else body
    headers = {"idempotency-key": f'"{world.unique()}"'} if chance.random() < 0.3 else None
    change = Change([(all.book, mark, value) for mark, value in made])
    with all.book.watched() as window:
        answer = await world.change(change, "POST", all.path, body, headers=headers, chance=chance)
    if headers:
        raw = answer.raw if answer is not None and answer.status == 201 else None
        world.of(Repetitions).made.append(Repeatable(change, all.path, body, headers, None, raw))
    if answer is not None:
        _check_refusal(all, answer, window, made)
        if answer.status == 201:
            ids = answer.body["rowIds"] if count > 1 else [answer.body["id"]]
            all.ids |= zip((mark for mark, _ in made), ids, strict=True)


async def patch(world: World, chance: Random) -> None:
    all = world.of(chance.choice(ALL))
    mark = _one(all, chance)
    if mark is None:
        return
    value = chance.choice([each for each in all.values if each != all.book.thing(mark).state])
    change = Change([(all.book, mark, value)])
    path = f"{all.path}/{all.ids[mark]}"
    with all.book.watched() as window:
        answer = await world.change(change, "PATCH", path, {all.value: value}, chance=chance)
    if answer is not None:
        _check_refusal(all, answer, window, [(mark, value)])


async def delete(world: World, chance: Random) -> None:
    all = world.of(chance.choice(ALL))
    mark = _one(all, chance)
    if mark is not None:
        change = Change([(all.book, mark, None)])
        answer = await world.change(change, "DELETE", f"{all.path}/{all.ids[mark]}", chance=chance)
        if answer is not None and answer.status == 404:
            raise Broken(f"{mark} cannot be deleted, it is said not to be there")


async def read(world: World, chance: Random) -> None:
    await _list(world, world.of(chance.choice(ALL)), chance)


async def truncate(world: World, chance: Random) -> None:
    """Delete all rows, if nobody is about to change one."""
    rows = world.of(Rows)
    if chance.random() < 0.2 and not any(thing.coming for thing in rows.book.things.values()):
        change = Change([(rows.book, mark, None) for mark in rows.book.sure()])
        if change.targets:
            rows.book.emptying = change
            await world.change(change, "POST", f"{rows.path}/truncate", {}, chance=chance)


def _one(all: Collection, chance: Random) -> str | None:
    marks = [mark for mark in all.book.sure() if mark in all.ids]
    return chance.choice(marks) if marks else None


def _check_refusal(all: Collection, answer: Answer, window: Window, made: list[tuple[str, str]]) -> None:
    """A unique value may only be refused where it may have been taken."""
    if answer.status < 300 or answer.status >= 500:
        return
    if not all.unique or answer.status != 400 or _NOT_UNIQUE not in answer.body["message"]:
        raise Broken(f"{all.title}: {made} is {answer.status}: {answer.body}")
    marks, values = {mark for mark, _ in made}, [value for _, value in made]
    taken: set[State] = set()
    for mark in all.book.things:
        taken |= set() if mark in marks else window.allowed(mark)
    if len(set(values)) == len(values) and not taken & set(values):
        raise Broken(f"{all.title}: {values} is refused as taken, and no record can have it")


async def _list(world: World, all: Collection, chance: Random | None = None) -> None:
    size = "limit" if all.unique else "perPage"
    with all.book.watched() as window:
        answer = await world.call("GET", f"{all.path}?{size}=1000", chance=chance)
    if answer is None:
        return
    shown = answer.body["items"]
    items = [each for each in shown if "alarmRuleId" not in each.get("eventTags", ())]
    found = {each[all.mark]: each[all.value] for each in items}
    if len(found) < len(items):
        raise Broken(f"{all.title}: a record is listed twice")
    if all.unique and len(set(found.values())) < len(found):
        raise Broken(f"{all.title}: a unique value is there twice: {found}")
    if answer.body["totalCount"] != len(shown):
        raise Broken(f"{all.title}: {answer.body['totalCount']} are counted, {len(shown)} listed")
    window.check(found)
    all.ids |= {each[all.mark]: each["id"] for each in items}


async def prepare(world: World) -> None:
    site = world.of(Site)
    answer = await world.call("POST", f"{site.path}/data-tables", {"name": "t", "columns": COLUMNS})
    assert answer is not None
    world.of(Rows).path = f"{site.path}/data-tables/{answer.body['dataTableId']}/rows"
    world.of(Events).path = f"{site.path}/events"


async def look(world: World) -> None:
    for each in ALL:
        await _list(world, world.of(each))


PART: Final = Part(prepare, {create: 14, patch: 8, delete: 4, read: 6, truncate: 1}, look, divided=True)
