"""The keys of one application in one store: what a move takes along, and what it leaves behind.

Owns which keys those are. All of them are named by the kinds of records (`Kind.owned_keys`), as for the sweep of a
deleted application. Not among them are its record with the index entries, which say that the store has it.

`spans` and `spans_of_record` are copied while the application is served elsewhere, and nobody takes notice of them.
What is `switched` is looked at for all applications of a store, whoever has them: names, and markers by which
something is removed or begun. So that comes in the commit with which an application comes, and goes with that with
which it goes. Triggers (`triggers`) do as well, and the blocks of runs (`blocks`) have numbers of their store.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.owner import unique_key
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.actors.people.audit.messages import AUDIT_ENTRY
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.sorted_runs import runs_of

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_KINDS: Final = tuple(
    kind
    for kind in KINDS.values()
    if kind.home != "root" and kind is not APPLICATION and kind is not AUDIT_ENTRY
)
"""The kinds of records in an application. An entry of an audit log belongs to a user or an organization."""
_SWITCHED: Final = (keys.CONTENT_PREFIX, keys.FLOW_SWEEP_PREFIX, keys.REPORT_TIMES_PREFIX)
"""The prefixes of keys in META, which the id of the application follows: of contents and parts of workflows that are to
be removed, and of reports that are due."""
SWITCHED_MAX: Final = 100_000
"""So many of these are one batch: 20 MB, a third of what may wait for a commit."""
_OWNING: Final = tuple(kind for kind in _KINDS if kind.owned_keys(bytes(12), bytes(12)))


class Span(NamedTuple):
    """The keys of a database with a prefix; with `is_key` only the one that is the prefix."""

    db: str
    prefix: bytes
    is_key: bool = False

    @property
    def range(self) -> tuple[str, bytes, bytes | None]:
        """The database, the first key, and the first one behind."""
        end = self.prefix + b"\x00" if self.is_key else keys.prefix_end(self.prefix)
        return self.db, self.prefix, end


def spans(application: bytes) -> Iterator[Span]:
    """Yield the ranges of keys that name their application, except those of unique texts."""
    for kind in _KINDS:
        prefix = keys.record_prefix(kind.name, application)
        yield Span(keys.RECORDS, prefix)
        yield Span(keys.INDEXES, prefix)
        yield Span(keys.COUNTS, keys.total_key(kind.name, application), is_key=True)
    for db, prefix in APPLICATION.owned_keys(ROOT, application):
        yield Span(db, prefix)


def owning(snapshot: Snapshot, application: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the kind and the id of each record that owns keys outside of those of its application."""
    for kind in _OWNING:
        prefix = keys.record_prefix(kind.name, application)
        for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            yield kind.name, bytes(key[-keys.ID_BYTES :])


def spans_of_record(application: bytes, kind: str, id: bytes) -> Iterator[Span]:
    """Yield the ranges of keys that belong to a record and are in none of its application."""
    for db, prefix in KINDS[kind].owned_keys(application, id):
        if db != keys.RUNS and not prefix.startswith((application, *_SWITCHED)):
            yield Span(db, prefix)
    if kind == DATA_TABLE.name:
        yield Span(keys.META, keys.SWEEP_PREFIX + id)


def devices(snapshot: Snapshot, application: bytes) -> Iterator[bytes]:
    """Yield the ids of the devices, deleted ones included."""
    for kind in (DEVICE, DELETED_DEVICE):
        prefix = keys.record_prefix(kind.name, application)
        for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            yield bytes(key[-keys.ID_BYTES :])


def blocks(snapshot: Snapshot, run: int, device: bytes) -> Iterator[bytes]:
    """Yield the keys of the blocks of a device in a run."""
    prefix = keys.run_prefix(run) + device
    return snapshot.keys(keys.RUNS, prefix, keys.prefix_end(prefix))


def triggers(snapshot: Snapshot, application: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what workflows of the application are still to be run for, in the order of arrival."""
    of_application = {application, *devices(snapshot, application)}
    for key, value in snapshot.range(keys.TRIGGERS, b"", None):
        place, id = keys.trigger_home(bytes(key))
        if place != "root" and id in of_application:
            yield bytes(key), bytes(value)


def switched(snapshot: Snapshot, application: bytes) -> Iterator[tuple[str, bytes, bytes]]:
    """Yield the database, key and value of what comes and goes with the record of the application."""
    for prefix in _SWITCHED:
        low = prefix + application
        for key, value in snapshot.range(keys.META, low, keys.prefix_end(low)):
            yield keys.META, bytes(key), bytes(value)
    for key, value in unique_texts(snapshot, application):
        yield keys.UNIQUE, key, bytes(value)


def unique_texts(snapshot: Snapshot, application: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of the texts of its records, and of its own, that are unique and held by them."""
    for key, holder in _unique_keys(snapshot, application):
        if snapshot.get(keys.UNIQUE, key) == holder:
            yield key, holder


def _unique_keys(snapshot: Snapshot, application: bytes) -> Iterator[tuple[bytes, bytes]]:
    raw = snapshot.get(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, application))
    slug = None if raw is None else decode(raw).get("endpointSlug")
    if slug is not None:
        yield unique_key(APPLICATION, "endpointSlug", slug), application
    for kind in (kind for kind in _KINDS if kind.unique):
        prefix = keys.record_prefix(kind.name, application)
        for key, value in snapshot.range(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            holder = records.holder(kind, application, bytes(key[-keys.ID_BYTES :]))
            for unique in records.unique_keys(kind, application, decode(value)).values():
                yield unique, holder


def held_keys(snapshot: Snapshot, application: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield all keys of an application but its record with the index entries.

    What a record owns comes before it, and index entries before their records: so what is left is found again after a
    part was deleted.
    """
    for db, key, _ in switched(snapshot, application):
        yield db, key
    for key, _ in triggers(snapshot, application):
        yield keys.TRIGGERS, key
    for device in devices(snapshot, application):
        for run in runs_of(snapshot):
            for key in blocks(snapshot, run.number, device):
                yield keys.RUNS, bytes(key)
    of_records = (
        span for kind, id in owning(snapshot, application) for span in spans_of_record(application, kind, id)
    )
    for span in chain(of_records, reversed([*spans(application)])):
        for key in snapshot.keys(*span.range):
            yield span.db, bytes(key)
