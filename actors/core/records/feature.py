"""What a package adds to the server, said once in its `feature.py`.

The lists of all kinds, actors, reads, jobs and resources are loops over these values (`actors/catalogue.py`,
`actors/readers.py`). The file `features.py` of a wing names the features of its packages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.portable import Portable
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.values.structs import Message

if TYPE_CHECKING:
    from trunkline.actors.core.query.fields import Fields
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.moved import Moved
    from trunkline.actors.core.runtime.system import System
    from trunkline.limits.settings import Settings

T = TypeVar("T")

Reader = Callable[[Reading, Any], Any]
"""Answers a read message."""
KindReader = Callable[[Mapping[str, Kind], Reading, Any], Any]
"""Answers a read message about records of many kinds, which it gets by name or by the field that counts them."""
ResourceReader = Callable[[Mapping[str, Resource], Reading, Any], Any]
"""Answers a read message about records of any plain resource, which it gets by name."""


@dataclass(frozen=True, slots=True)
class Start:
    """What the components of a system are made from: `secret` is that of the data directory, `read` answers reads."""

    system: System
    settings: Settings
    secret: bytes
    read: Callable[[Message], Awaitable[Any]]


class Task(Protocol):
    """A component that works in the background."""

    @property
    def run(self) -> Callable[..., Awaitable[None]]:
        """Works until cancelled. Where it takes `task_status`, it tells by that when it has begun."""
        ...


class Stopped(Protocol):
    """A component with work that ends in good order."""

    async def stop(self) -> None: ...


def _no_parts(_start: Start) -> Iterable[object]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feature:
    """What a package adds.

    `kinds` are its kinds of records, except those of its plain `resources`. `uploaded` are the kinds whose contents are
    uploaded by a signed form, each with the kind of the actor that completes them. `fields` are those that an advanced
    query may name, except those of resources. `jobs` are its kinds of jobs (`platform/jobs/job.py`).

    `readers` answer its read messages; `before_reads` are done, and may wait, before some of them are answered.
    `counted_readers` also get the kinds that an application's summary counts, by the field of the summary;
    `kind_readers` all kinds, `resource_readers` all plain resources, each by name.

    `parts` makes its components of the system, one after the other: each is added before the next is made, and those of
    packages before it in the order are there. `tasks` are the components that work in the background, and `first_tasks`
    those that begin before all others, because they run workflows or serve them. `stops` are those whose work ends in
    good order when the server stops; those of the last package come first. `moved` are those with work for
    applications, which ends and begins where one of them is moved to another process.

    `expiries` say what becomes too old and how it is found. `portable` are the resources that are exported and imported
    with their application; a kind that is in none of them says why not.
    """

    kinds: tuple[Kind, ...] = ()
    resources: tuple[Resource, ...] = ()
    actors: tuple[type[Actor], ...] = ()
    uploaded: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Fields, ...] = ()
    jobs: tuple[Any, ...] = ()
    readers: Mapping[type[Message], Reader] = field(default_factory=dict)
    before_reads: Mapping[type[Message], Callable[[System, Any], Awaitable[Any]]] = field(
        default_factory=dict
    )
    counted_readers: Mapping[type[Message], KindReader] = field(default_factory=dict)
    kind_readers: Mapping[type[Message], KindReader] = field(default_factory=dict)
    resource_readers: Mapping[type[Message], ResourceReader] = field(default_factory=dict)
    parts: Callable[[Start], Iterable[object]] = _no_parts
    first_tasks: tuple[type[Task], ...] = ()
    tasks: tuple[type[Task], ...] = ()
    stops: tuple[type[Stopped], ...] = ()
    moved: tuple[type[Moved], ...] = ()
    expiries: tuple[Expiry, ...] = ()
    portable: tuple[Portable, ...] = ()


def by_name(named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Things by their names. Raises TypeError where two have the same name."""
    found: dict[str, T] = {}
    for name, thing in named:
        if found.setdefault(name, thing) is not thing:
            raise TypeError(f"{name}: two features add this name; give one of them another name")
    return found
