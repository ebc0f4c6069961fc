"""What becomes too old: how a package says where it is searched, and what searches have in common.

Owns the parts of a search, and the arithmetic of ages. Does not own when a search is made, nor that what it finds is
removed (`actors/maintenance/retention.py`), nor what is too old: that is decided beside the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import HOUR_MS
from trunkline.limits.table import DAY_MS, Limits
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot

NEVER_MS = keys.TIME_MS_MAX
"""The wait for an entry that does not exist."""


class Part(NamedTuple):
    """A part of a search: the messages that remove what was found, as one batch.

    The search goes on at `start`, or at `past` if none of the messages was accepted; it has ended where that is None.
    `wait_ms` is the time until the next entry of this part is too old.
    """

    asks: list[Ask]
    start: bytes | None
    past: bytes | None
    wait_ms: int
    answers: Sequence[bytes] = ()
    """Owners of answers that have expired; these are removed without their owners, which may be deleted."""


class Step(NamedTuple):
    """A step of a search: what is searched, and where it goes on; `start` is empty at the beginning."""

    owner: bytes
    start: bytes
    limits: Limits
    now_ms: int


class Searching(Protocol):
    """Finds what a step may remove."""

    def __call__(self, snapshot: Snapshot, step: Step) -> Part: ...


class Expiry(NamedTuple):
    """What becomes too old of an application, or of the server as a whole (`of_server`).

    `counts` says of each message that removes something what the numbers of its answer count, in their order.
    """

    search: Searching
    counts: Mapping[type[Message], tuple[str, ...]]
    of_server: bool = False


T = TypeVar("T")
M = TypeVar("M", bound=Message)


class Search(NamedTuple, Generic[M]):
    """What was found at a device or a workflow: the message that removes it, None if there is nothing to remove.

    `is_complete`: it has no more of it now. `wait_ms` is the time until its next entry is too old.
    """

    message: M | None
    is_complete: bool
    wait_ms: int


def search_each(
    snapshot: Snapshot,
    step: Step,
    kind: Kind,
    find: Callable[[bytes, int], Search[Any]],
) -> Part:
    """Search the records of a kind; `find` is given an id, and how many entries may be removed of it."""
    application, limits = step.owner, step.limits
    asks: list[Ask] = []
    wait_ms, left = NEVER_MS, limits.removed_entries_max
    prefix = keys.record_prefix(kind.name, application)
    found_keys = snapshot.keys(keys.RECORDS, prefix + step.start, keys.prefix_end(prefix))
    for number, key in enumerate(found_keys):
        id = bytes(key[-keys.ID_BYTES :])
        if number >= limits.searched_devices_max or len(asks) >= limits.expired_devices_max:
            return Part(asks, id, id, wait_ms)
        found = find(id, left)
        wait_ms = min(wait_ms, found.wait_ms)
        if found.message is not None:
            asks.append((Ref(kind.name, application, id), found.message))
            left -= found.message.entries
        if not found.is_complete:
            return Part(asks, id, id + b"\x00", wait_ms)
    return Part(asks, None, None, wait_ms)


def kept_since_ms(keep_days: int, now_ms: int) -> int:
    """The time in ms from which entries are kept; 0 if all are."""
    return max(0, now_ms - keep_days * DAY_MS) if keep_days else 0


def older_hours(hours: Iterator[int], oldest_ms: int, most: int) -> tuple[list[int], int]:
    """Those of the hours that ended before `oldest_ms`, and the time in ms until the next one is too old."""
    return older((((hour + 1) * HOUR_MS, hour) for hour in hours), oldest_ms, most)


def older(entries: Iterator[tuple[int, T]], oldest_ms: int, most: int) -> tuple[list[T], int]:
    """Those of the entries, which come in the order of their times, that are older, and the wait for the next one."""
    found: list[T] = []
    for time_ms, entry in entries:
        if time_ms >= oldest_ms:
            return found, time_ms - oldest_ms + 1
        if len(found) >= most:
            return found, 0
        found.append(entry)
    return found, NEVER_MS
