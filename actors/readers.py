"""The table of readers: the function that answers each read message, and where it runs.

A short read runs in the event loop on its own snapshot; a long one (a scan of an application, a query over history)
runs the same function in a worker thread. The function itself decides whether it is long (`Reading.check_time`).
In both cases it sees every write that was acknowledged before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from trunkline.actors import profile
from trunkline.actors.catalogue import COUNTED, FEATURES, KINDS, RESOURCES
from trunkline.actors.core.query.price import looked_at
from trunkline.actors.core.records.feature import Feature, Reader
from trunkline.actors.core.records.read_time import Inline, ReadTime
from trunkline.actors.core.records.reading import Reading, TakesLong
from trunkline.actors.core.records.source import Staged
from trunkline.actors.core.values.errors import Crashed, DomainError
from trunkline.actors.core.values.structs import Message
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

LATER: Final = object()
"""Returned by `read_at_once` for a read that must run in a worker thread."""

_log = structlog.get_logger("trunkline.actors")


def _readers_of(feature: Feature) -> Iterator[tuple[type[Message], Reader]]:
    yield from feature.readers.items()
    for message, counted in feature.counted_readers.items():
        yield message, partial(counted, COUNTED)
    for message, of_kinds in feature.kind_readers.items():
        yield message, partial(of_kinds, KINDS)
    for message, of_resources in feature.resource_readers.items():
        yield message, partial(of_resources, RESOURCES)


READERS: Final[Mapping[type[Message], Reader]] = {
    **profile.READERS,
    **{message: reader for feature in FEATURES for message, reader in _readers_of(feature)},
}
"""The function that answers each read message, as the packages say in their `feature.py`."""


_BEFORE: Final = {message: first for feature in FEATURES for message, first in feature.before_reads.items()}


async def read(
    system: System,
    message: Message,
    finish: Callable[[Any], Any] | None = None,
    finish_long: Callable[[Any], Any] | None = None,
) -> Any:
    """Answer a read message. Raises the reader's `DomainError`, `Overloaded` if too many reads wait.

    `finish` makes of the answer what is returned, and `finish_long` that of a long read, in the thread where it was
    read. A read that takes too long raises as `ReadTime.check`.
    """
    first = _BEFORE.get(type(message))
    if first is not None and _elsewhere(system, message) is None:
        await first(system, message)
    value = read_at_once(system, message)
    peers, application = system.peers, _elsewhere(system, message)
    if peers is not None and application is not None:
        value = await peers.read(application, message)
    if value is not LATER:
        return value if finish is None else finish(value)
    reader, limits = READERS[type(message)], system.limits
    read_time = ReadTime(limits, message)

    def answer(snapshot: Snapshot) -> Any:
        read_time.begin()
        with looked_at(read_time.check):
            value = reader(Reading(snapshot, limits, in_loop=False, system=system), message)
            return value if finish_long is None else finish_long(value)

    try:
        return await system.read(answer, wide=True, on_step=read_time.check)
    except StoreError as broken:
        raise _broken(message, broken) from broken


def read_at_once(system: System, message: Message) -> Any:
    """Answer a read message without waiting; `LATER` if it has to wait. Raises the reader's `DomainError`."""
    if _elsewhere(system, message) is not None:
        return LATER
    reader, inline = READERS[type(message)], Inline()
    try:
        with looked_at(inline.check):
            return system.store.look(
                lambda snapshot: reader(
                    Reading(snapshot, system.limits, in_loop=True, system=system), message
                ),
                wide=True,
                on_step=inline.check,
                on_large=inline.take,
            )
    except TakesLong:
        return LATER
    except StoreError as broken:
        raise _broken(message, broken) from broken


def _elsewhere(system: System, message: Message) -> bytes | None:
    """The application of a read message that another process has to answer: what waits there is not on the disk."""
    if system.peers is None:
        return None
    application = getattr(message, "application", None)
    if type(application) is not bytes or not system.peers.has_application(application):
        return None
    return application


def read_in_turn(actor: Actor, message: Message) -> Any:
    """Answer a read message as if the turn of an actor were stored. For readers of single keys."""
    staged = cast("Snapshot", Staged(actor))
    return READERS[type(message)](Reading(staged, actor.system.limits, in_loop=True), message)


def _broken(message: Message, broken: StoreError) -> DomainError:
    if isinstance(broken, DomainError):
        return broken
    _log.error("read failed", message=type(message).__name__, exc_info=broken)
    return Crashed("The store failed to read; the fault is logged.")
