"""Which application a key of a store belongs to, for commands that divide applications among partitions.

Owns the answer for the keys of all databases. Some keys do not have the id of their application: those of devices and
of rows, and of texts that are unique. So the applications of devices, data tables and such records are held in memory,
about 150 bytes for each. Does not own where a key is placed while a server runs (`core/records/placement.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.store import keys
from trunkline.store.errors import StoreDamaged

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_NAMED_ALONE: Final = (
    DEVICE,
    DELETED_DEVICE,
    DATA_TABLE,
    *(kind for kind in KINDS.values() if kind.unique and kind.unique_in == "parent"),
)
"""Kinds of records whose ids are in keys, or in values of UNIQUE, without the id of their application."""


class KeyOwners:
    """The applications of several stores, each in one of them. `learn` all stores first, then ask with `of`."""

    def __init__(self) -> None:
        self.applications: dict[bytes, int] = {}
        """By the id of an application: the number of the store that has it."""
        self.fixed: set[bytes] = set()
        """Those that are being deleted, and those that a job is making: what goes on with them is in the same store."""
        self._things: dict[bytes, bytes] = {}

    def learn(self, store: int, snapshot: Snapshot) -> None:
        """Read which applications a store has, and what belongs to them. Raises StoreDamaged for one that is in two."""
        prefix = keys.record_prefix(APPLICATION.name, ROOT)
        for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
            self._add(bytes(key[-keys.ID_BYTES :]), store)
        for marker in (keys.PURGE_PREFIX, keys.BUILDING_PREFIX):
            for key in snapshot.keys(keys.META, marker, keys.prefix_end(marker)):
                id = bytes(key[len(marker) :])
                self._add(id, store)
                self.fixed.add(id)
        held = {id: id for id in self.applications}
        for kind in _NAMED_ALONE:
            prefix = keys.kind_prefix(kind.name)
            for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)):
                application = held.get(bytes(key[-2 * keys.ID_BYTES : -keys.ID_BYTES]))
                if application is not None:
                    self._things[bytes(key[-keys.ID_BYTES :])] = application

    def _add(self, application: bytes, store: int) -> None:
        other = self.applications.setdefault(application, store)
        if other != store:
            raise StoreDamaged(
                f"The application {application.hex()} is in the partitions {other} and {store}."
            )

    def of(self, db: str, key: bytes, value: bytes) -> bytes | None:
        """The application that a key belongs to; ROOT for what belongs to the server as a whole; None if it is unknown.

        Nothing is known of what deleted records have left, nor of what belongs to users and organizations.
        """
        id = self._named(db, key, value)
        if id is None or id == ROOT or id in self.applications:
            return id
        return self._things.get(id)

    def _named(self, db: str, key: bytes, value: bytes) -> bytes | None:
        """The id of an application, a device, a table or a record that a key names."""
        match db:
            case keys.RECORDS | keys.INDEXES:
                return _named_by_record(key)
            case keys.COUNTS if key.startswith(keys.TOTAL_PREFIX):
                return _named_by_record(key[len(keys.TOTAL_PREFIX) :])
            case keys.RUNS:
                return keys.block_device(key)
            case keys.ARRIVALS:
                return key[len(keys.LATEST_COUNTS) :][: keys.ID_BYTES]
            case keys.UNIQUE:
                return value[: keys.ID_BYTES]
            case keys.TRIGGERS:
                place, id = keys.trigger_home(key)
                return ROOT if place == "root" else id
            case keys.META:
                return key.partition(b"\x00")[2][: keys.ID_BYTES] or None
        return key[: keys.ID_BYTES]


def _named_by_record(key: bytes) -> bytes | None:
    name, _, rest = key.partition(b"\x00")
    kind = KINDS.get(name.decode("ascii", "replace"))
    if kind is APPLICATION:
        return rest[-keys.ID_BYTES :]
    if kind is not None and kind.home == "root":
        return ROOT
    return rest[: keys.ID_BYTES]
