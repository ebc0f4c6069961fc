"""Placement: the home of every key, and the turns that write keys of another home.

Several processes can each own a partition of the applications and their devices (`places.py`), later several machines.
So the home of each key is defined here, and code follows it: a turn writes keys of its own home, and gets other data
from the message, by an ask, or from a snapshot that may be slightly old.

Owns the three places, the home of every key and of every actor, and the list of exceptions, called crossings.
The tests check every batch of the test suite against it, so the list cannot grow unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, cast

from trunkline.actors.core.records.kind import Kind
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.runtime.ref import Ref
from trunkline.store import keys
from trunkline.store.batch import Batch

Place = Literal["root", "application", "device"]


class Home(NamedTuple):
    """The placement of a key or an actor: with the server as a whole, with one application, or with one device.

    `id` is that of the application or device; None if the key does not contain it (rows contain the id of their table).
    """

    place: Place
    id: bytes | None = None


ROOT_HOME: Final = Home("root")


class Crossing(NamedTuple):
    """An exception: actors of one kind write keys of another home, their own application or the root.

    `resolution` is how the exception will be removed when partitions are served by different processes.
    """

    actor: str
    db: str
    place: Place
    what: str
    resolution: str


CROSSINGS: Final[tuple[Crossing, ...]] = (
    Crossing(
        "device",
        keys.RECORDS,
        "application",
        "the record of the device",
        "the device asks its application to change the record, and then loads it again",
    ),
    Crossing(
        "device",
        keys.INDEXES,
        "application",
        "the index entries of the device in the lists of its application",
        "they change together with the record",
    ),
    Crossing(
        "device",
        keys.COUNTS,
        "application",
        "the counts of payloads and devices of the application",
        "increments are sent to the application in batches; they may be added in any order",
    ),
    Crossing(
        "device",
        keys.META,
        "application",
        "the marker that the event log is to be told how the alarms of the device stand",
        "the device sends the event log how they stand, and repeats that until it is acknowledged",
    ),
    Crossing(
        "device",
        keys.MESSAGES,
        "application",
        "that a message with QoS 2 of an MQTT session was received, in the batch of the states that it brought",
        "the session gives each such message a number, which the device keeps with its states",
    ),
    Crossing(
        "application",
        keys.UNIQUE,
        "root",
        "the endpoint slug, which is unique in the server, and unique texts of plain records of the application",
        "each partition has the names of its applications; a claim looks into all, under a lock until its commit",
    ),
    Crossing(
        "experience",
        keys.UNIQUE,
        "root",
        "the names of domains and the slugs, which are unique in the server",
        "each partition has the names of its applications; a claim looks into all, under a lock until its commit",
    ),
    Crossing(
        "fileTree",
        keys.UNIQUE,
        "root",
        "the paths of files of the application",
        "they are in the partition of the application; these keys are hashes, so a reader looks into all",
    ),
)
"""In addition, the sweep writes batches that remove what deletions left behind, and the retention those that remove
expired answers of calls; each partition will remove its own. The batch of a command to many devices has its answer,
which lives with the application."""

APPLICATION_PREFIXES: Final = (
    keys.JOBS_PREFIX,
    keys.JOB_DATA_PREFIX,
    keys.PURGE_PREFIX,
    keys.FOREIGN_PREFIX,
    keys.ARRIVED_PREFIX,
    keys.BUILDING_PREFIX,
    keys.CONTENT_PREFIX,
    keys.FLOW_TIMERS_PREFIX,
    keys.SCHEDULED_PREFIX,
    keys.WEBHOOK_CONNECTION_PREFIX,
    keys.UNTOLD_ALARMS_PREFIX,
    keys.CAUSED_ALARMS_PREFIX,
    keys.ALARM_NOTICES_PREFIX,
    keys.REPORT_TIMES_PREFIX,
)
"""The prefixes of keys in META after which the id of an application follows."""

READS: Final[Mapping[str, str]] = {
    "application": "the e-mail address of its owner, when a job is queued: the message will contain it; whether users "
    "whom alarm rules and groups name may read it: a snapshot that may be slightly old is enough",
    "device": "whether its application exists, its gateway and its ancestors: an ask of the application; the "
    "alarm rules of its application: a copy in memory; whether its events hold alarms open: a message to the event "
    "log",
    "eventLog": "the name of a device, whether it exists, and what alarm rules choose it by: a snapshot that may be "
    "slightly old is enough; how the alarms of a device stand: the message will contain it",
    "experience": "whether a device exists: a snapshot that may be slightly old is enough",
    "flow": "whether its application exists: the partition of the application knows",
    "deployments": "devices, to check their class: an ask of them, or a snapshot that may be slightly old",
    "flowTester": "the workflow that is tested: both live with the application",
    "flowReplayer": "the workflow whose runs it repeats: both live with the application",
    "virtualButton": "the workflow that the button belongs to: both live with the application",
    "scheduledPresses": "the workflows whose buttons are pressed: all live with the application",
    "org": "who owns the applications in the roles of a member: a snapshot that may be slightly old is enough",
    "dataTable": "whether its application exists: the partition of the application knows",
}
"""By kind of actor: what its turns read from other homes, and how that will be resolved."""


def home_of_actor(ref: Ref) -> Home:
    """The home of an actor."""
    if ref.kind in ("user", "org", "auditLog", "userJobs"):
        return ROOT_HOME
    if ref.kind == "device":
        return Home("device", ref.id)
    return Home("application", ref.id if ref.kind == "application" else ref.parent)


def home_of_key(kinds: Mapping[str, Kind], db: str, key: bytes) -> Home:
    """The home of a key. Raises KeyError for a record of an unknown kind."""
    if db in (keys.TIMELINE, keys.COMMANDS, keys.LOGS, keys.ARRIVALS):
        return Home("device", key[: keys.ID_BYTES])
    if db == keys.RUNS:
        return Home("device", keys.block_device(key))
    if db in (keys.TRIGGERS, keys.ANSWERS):
        place, id = keys.trigger_home(key) if db == keys.TRIGGERS else keys.answers_home(key)
        return Home(cast("Place", place), id)
    if db in (keys.ROWS, keys.CELLS):
        return Home("application")
    if db in (keys.EVENTS, keys.FLOWS, keys.MESSAGES):
        return Home("application", key[: keys.ID_BYTES])
    if db in (keys.RECORDS, keys.INDEXES):
        return _home_of_record(kinds, key)
    if db == keys.COUNTS and key.startswith(keys.TOTAL_PREFIX):
        return _home_of_record(kinds, key.removeprefix(keys.TOTAL_PREFIX))
    if db == keys.COUNTS:
        return Home("application", key[: keys.ID_BYTES])
    if db == keys.META and key.startswith((keys.OPEN_LINKS_PREFIX, keys.WAITING_PREFIX)):
        return Home("device", key[-keys.ID_BYTES :])
    if db == keys.META and key.startswith(APPLICATION_PREFIXES):
        start = key.index(b"\x00") + 1
        return Home("application", key[start : start + keys.ID_BYTES])
    if db == keys.META and key not in (b"format", b"encryptionKey"):
        return Home("application")
    return ROOT_HOME


def _home_of_record(kinds: Mapping[str, Kind], key: bytes) -> Home:
    name, _, rest = key.partition(b"\x00")
    kind, parent = kinds[name.decode()], rest[: keys.ID_BYTES]
    if kind is APPLICATION:
        # Each record is placed with its application; lists and totals of applications are merged from all partitions.
        return Home("application", key[-keys.ID_BYTES :] if len(rest) > keys.ID_BYTES else None)
    if kind.home == "root":
        return ROOT_HOME
    return Home("application", parent)


def misplaced_writes(kinds: Mapping[str, Kind], ref: Ref, batch: Batch) -> Iterator[str]:
    """Yield a sentence for each key written by a turn that has another home than its actor and is not an exception."""
    home = home_of_actor(ref)
    for db, key in batch.written():
        place, id = home_of_key(kinds, db, key)
        if home.place == "root" and id == ref.id:
            continue  # an API token of the user: its parent is the user
        if place == home.place and id in (home.id, None):
            continue
        crosses = any((each.actor, each.db, each.place) == (ref.kind, db, place) for each in CROSSINGS)
        if not crosses or id not in (ref.parent, None):
            yield f"{ref.kind} {ref.id.hex()} writes {db} {key.hex()}, which lives with {place} {(id or b'').hex()}"
