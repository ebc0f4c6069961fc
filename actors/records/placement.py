"""Placement: where the data of every key lives, and which turns write keys that live elsewhere.

Today one process serves everything. More processes or machines will each own a part of the applications and their
devices, so from now on it is data where each key lives, and code keeps to it: a turn writes keys of its own home, and
what it needs from elsewhere comes with the message, by an ask, or from a snapshot that may be a moment old.

Owns the three places, the home of every key and of every actor, and the list of exceptions, which are called crossings.
A test holds every batch of the test suite against it, so the list cannot grow unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from trunkline.actors.records.kind import Kind
from trunkline.actors.records.kinds import APPLICATION
from trunkline.actors.runtime.ref import Ref
from trunkline.store import keys
from trunkline.store.batch import Batch

Place = Literal["root", "application", "device"]


class Home(NamedTuple):
    """Where something lives: with the server as a whole, with one application, or with one device.

    `id` is that of the application or device; None where the key does not say it (rows carry the id of their table).
    """

    place: Place
    id: bytes | None = None


ROOT_HOME: Final = Home("root")


class Crossing(NamedTuple):
    """Actors of one kind write keys of another home: their own application, or the root.

    `way_out` says how that ends when parts are served apart.
    """

    actor: str
    db: str
    place: Place
    what: str
    way_out: str


CROSSINGS: Final[tuple[Crossing, ...]] = (
    Crossing(
        "device",
        keys.RECORDS,
        "application",
        "the record of the device",
        "the record is changed by an ask of its application, which the device then loads anew",
    ),
    Crossing(
        "device",
        keys.INDEXES,
        "application",
        "the places of the device in the lists of its application",
        "they go with the record",
    ),
    Crossing(
        "device",
        keys.COUNTS,
        "application",
        "payloads and devices, counted for the application",
        "increments are sent to the application in batches; they may be added in any order",
    ),
    Crossing(
        "application",
        keys.UNIQUE,
        "root",
        "the endpoint slug, which belongs to one application of the server",
        "the slug is claimed by an ask of the root before the turn",
    ),
)
"""Beside these, the sweep writes batches over all that a deletion left behind; each part will sweep its own."""

READS: Final[Mapping[str, str]] = {
    "application": "the e-mail address of its owner, when a job is queued: it comes with the message",
    "device": "whether its application exists, its gateway and its ancestors: an ask of the application",
    "eventLog": "the name of a device, and whether it exists: a snapshot that may be a moment old will do",
    "dataTable": "whether its application exists: the part that serves the application knows",
}
"""What turns read of other homes, with the way out of each."""


def home_of_actor(ref: Ref) -> Home:
    """Where an actor lives."""
    if ref.kind == "user":
        return ROOT_HOME
    if ref.kind == "device":
        return Home("device", ref.id)
    return Home("application", ref.id if ref.kind == "application" else ref.parent)


def home_of_key(kinds: Mapping[str, Kind], db: str, key: bytes) -> Home:
    """Where the data of a key lives. Raises KeyError for a record of a kind that nobody knows."""
    if db in (keys.TIMELINE, keys.COMMANDS, keys.LOGS):
        return Home("device", key[: keys.ID_BYTES])
    if db in (keys.ROWS, keys.CELLS):
        return Home("application")
    if db == keys.EVENTS:
        return Home("application", key[: keys.ID_BYTES])
    if db in (keys.RECORDS, keys.INDEXES):
        return _home_of_record(kinds, key)
    if db == keys.COUNTS and key.startswith(keys.TOTAL_PREFIX):
        return _home_of_record(kinds, key.removeprefix(keys.TOTAL_PREFIX))
    if db == keys.COUNTS:
        return Home("application", key[: keys.ID_BYTES])
    if db == keys.META and key != b"format":
        return Home("application")
    return ROOT_HOME


def _home_of_record(kinds: Mapping[str, Kind], key: bytes) -> Home:
    name, _, rest = key.partition(b"\x00")
    kind, parent = kinds[name.decode()], rest[: keys.ID_BYTES]
    if kind is APPLICATION:
        # Each record lives with its application; lists and totals of applications are merged from all parts.
        return Home("application", key[-keys.ID_BYTES :] if len(rest) > keys.ID_BYTES else None)
    if kind.home == "root":
        return ROOT_HOME
    return Home("application", parent)


def strays(kinds: Mapping[str, Kind], ref: Ref, batch: Batch) -> Iterator[str]:
    """A sentence for each key of a turn that lives elsewhere than its actor and is no exception."""
    home = home_of_actor(ref)
    for db, key in batch.written():
        place, id = home_of_key(kinds, db, key)
        if home.place == "root" and id == ref.id:
            continue  # an API token of the user lies under the user
        if place == home.place and id in (home.id, None):
            continue
        crosses = any((each.actor, each.db, each.place) == (ref.kind, db, place) for each in CROSSINGS)
        if not crosses or id not in (ref.parent, None):
            yield f"{ref.kind} {ref.id.hex()} writes {db} {key.hex()}, which lives with {place} {(id or b'').hex()}"
