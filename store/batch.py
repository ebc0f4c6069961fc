"""A batch: the writes of one turn of an actor, committed atomically.

Owns only the form of the writes; the journal applies them. A batch is plain data (`to_plain`), so that it could
be sent to another machine and applied there.

For each key the operations take effect in the order of the calls: a later `put` or `delete` replaces earlier
ones, an `add` is added to their result. Only the result for each key is kept, because the journal needs
no more, and because one dict can be merged into another without a loop in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard

from trunkline.store.counters import merge_increments
from trunkline.store.keys import (
    ARRIVALS,
    DATABASES,
    FLOW_SWEEP_PREFIX,
    ID_BYTES,
    META,
    PURGE_PREFIX,
    RECORDS,
    ROWS,
    SWEEP_PREFIX,
)
from trunkline.store.report_items import Reports, reported, wiped

KEY_BYTES_MAX = 511
"""LMDB's own bound for a key."""

# The memory of an entry in addition to its bytes: two objects and a slot in a dict.
_ENTRY_BYTES = 160

_KNOWN = frozenset(DATABASES)
_DATA = (RECORDS, ROWS)
_MARKERS = (PURGE_PREFIX, SWEEP_PREFIX, FLOW_SWEEP_PREFIX)


Completes = Literal["deletion", "revocation", "stored"] | None
"""What a batch is, or is the rest of: a deletion, the end of access that somebody has, or the rest of something else
that is stored already. None: it is something new."""


class Batch:
    """Puts, deletes, increments of counters and reports of devices that are committed together.

    `writes` holds the value of each key of each database (None: delete it), `increments` those of counters, `reports`
    what devices reported, in order (`arrivals.py`). With `moves_counts` the latest payload counts of applications are
    moved from ARRIVALS to COUNTS. `completes` says what the batch is a part of, on which its right to the reserve of
    a full disk depends.
    """

    __slots__ = (
        "completes",
        "deletes",
        "increments",
        "moves_counts",
        "removals",
        "reports",
        "size_bytes",
        "writes",
    )

    def __init__(self) -> None:
        self.writes: dict[str, dict[bytes, bytes | None]] = {}
        self.increments: dict[str, dict[bytes, dict[str, int]]] = {}
        self.reports: dict[bytes, Reports] = {}
        self.moves_counts = False
        self.completes: Completes = None
        self.deletes = False
        self.removals = 0
        """The reports that remove something."""
        self.size_bytes = 0
        """The memory that the batch uses while it waits: at least the bytes of its keys and values."""

    def put(self, db: str, key: bytes, value: bytes) -> None:
        """Store `value` under `key`. Raises ValueError for an unknown database or an invalid key.

        Checked here and not at the commit, where one invalid write would make the whole group fail.
        """
        if type(value) is not bytes:
            raise TypeError("a value is bytes")
        self.size_bytes += _key_bytes(key) + len(value) + _ENTRY_BYTES
        writes = self.writes.get(db)
        if writes is None or self.increments:
            self._set(db, key, value)
        else:
            writes[key] = value

    def put_all(self, db: str, writes: dict[bytes, bytes]) -> None:
        """Store every value of `writes` under its key. The same as a `put` for each, in a tenth of the time."""
        if not writes:
            return
        if {*map(type, writes), *map(type, writes.values())} != {bytes}:
            raise TypeError("a key is bytes, and so is a value")
        sizes = list(map(len, writes))
        if not 0 < min(sizes) <= max(sizes) <= KEY_BYTES_MAX:
            raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes")
        self.size_bytes += sum(sizes) + sum(map(len, writes.values())) + _ENTRY_BYTES * len(writes)
        present = self.writes.get(db)
        if present is None or self.increments:
            for key, value in writes.items():
                self._set(db, key, value)
        else:
            present.update(writes)

    def delete(self, db: str, key: bytes) -> None:
        """Remove `key`; no error if it does not exist."""
        self.size_bytes += _key_bytes(key) + _ENTRY_BYTES
        self._set(db, key, None)
        self.deletes = True

    def delete_all(self, db: str, keys: Sequence[bytes]) -> None:
        """Remove all these keys. The same as a `delete` for each, in less time."""
        if not keys:
            return
        self.size_bytes += sum(map(_key_bytes, keys)) + _ENTRY_BYTES * len(keys)
        self.deletes = True
        present = self.writes.get(db)
        if present is None or self.increments:
            for key in keys:
                self._set(db, key, None)
        else:
            present.update(dict.fromkeys(keys))

    def add(self, db: str, key: bytes, counts: Mapping[str, int]) -> None:
        """Add `counts` to the counters stored at `key` (a CBOR map of name to integer; absent ones are 0)."""
        if db not in _KNOWN:
            raise ValueError(f"{db!r} is not a database")
        if not _are_counts(counts):
            raise TypeError("counts are integers by name")
        self.size_bytes += _key_bytes(key) + _ENTRY_BYTES * (1 + len(counts))
        merge_increments(self.increments.setdefault(db, {}), key, counts)

    def report(self, device: bytes, time_ms: int, point: bytes) -> None:
        """Append a report of a device: the point of a time, in CBOR."""
        item = reported(time_ms, point)
        self._reports_of(device, item).items.append(item)

    def report_item(self, device: bytes, item: bytes) -> None:
        """Append states as columns, or which frames of the link are stored."""
        self._reports_of(device, item).items.append(item)

    def report_head(self, device: bytes, item: bytes) -> None:
        """Append the head of a device."""
        reports = self._reports_of(device, item)
        reports.items.append(item)
        reports.has_head = True

    def report_removal(self, device: bytes, item: bytes) -> None:
        """Append what removes or replaces something of a device, an item of `report_items.py`."""
        self._reports_of(device, item).items.append(item)
        self.deletes = True
        self.removals += 1

    def report_wiped(self, device: bytes) -> None:
        """Append the removal of all that a device reported."""
        self.report_removal(device, wiped())
        self.reports[device].has_head = True

    def _items(self) -> dict[bytes, list[bytes]]:
        return {device: reports.items for device, reports in self.reports.items()}

    def _reports_of(self, device: bytes, item: bytes) -> Reports:
        self.size_bytes += len(item) + _ENTRY_BYTES
        reports = self.reports.get(device)
        if reports is None:
            if len(device) != ID_BYTES:
                raise ValueError(f"an id has {ID_BYTES} bytes, not {len(device)}")
            reports = self.reports[device] = Reports()
        return reports

    def extend(self, other: Batch) -> None:
        """Append the operations of `other` to those of this batch. They were checked when they were added to it."""
        for device, reports in other.reports.items():
            present = self.reports.get(device)
            if present is None:
                present = self.reports[device] = Reports()
            present.extend(reports)
        self.removals += other.removals
        self.deletes |= other.deletes
        self.moves_counts |= other.moves_counts
        self.size_bytes += other.size_bytes
        for db, writes in other.writes.items():
            if db not in self.writes:
                self.writes[db] = writes.copy()
            else:
                self.writes[db].update(writes)
            increments = self.increments.get(db)
            if increments is not None and not increments.keys().isdisjoint(writes):
                for key in increments.keys() & writes.keys():
                    del increments[key]
                if not increments:
                    del self.increments[db]
        for db, added in other.increments.items():
            increments = self.increments.setdefault(db, {})
            for key, counts in added.items():
                merge_increments(increments, key, counts)

    def conflict(self, other: Batch) -> tuple[str, bytes] | None:
        """A key that both write, so that one of the writes would be lost; None if there is no such key.

        Two increments of a counter are no conflict, nor are equal values.
        """
        for db, writes in other.writes.items():
            mine, added = self.writes.get(db, {}), self.increments.get(db, {})
            if not (mine.keys().isdisjoint(writes) and added.keys().isdisjoint(writes)):
                for key, value in writes.items():
                    if key in added or (key in mine and mine[key] != value):
                        return db, key
        for db, increments in other.increments.items():
            for key in increments.keys() & self.writes.get(db, {}).keys():
                return db, key
        return None

    def mostly_deletes(self) -> bool:
        """Whether the batch deletes at least as many keys as it puts."""
        if not self.deletes:
            return False
        values = [value for writes in self.writes.values() for value in writes.values()]
        # The head comes with each removal, and takes little.
        reported = sum(len(reports.items) - reports.has_head for reports in self.reports.values())
        return 2 * (values.count(None) + self.removals) >= len(values) + reported

    def deletes_data(self) -> bool:
        """Whether the batch deletes a record or a row, or marks what is to be deleted, whatever else it writes."""
        if self.completes == "deletion":
            return True
        if self.deletes and any(None in self.writes.get(db, {}).values() for db in _DATA):
            return True
        return any(
            key.startswith(_MARKERS) for key, value in self.writes.get(META, {}).items() if value is not None
        )

    def written(self) -> Iterator[tuple[str, bytes]]:
        """Yield database and key of everything that the batch writes."""
        for db, writes in self.writes.items():
            yield from ((db, key) for key in writes)
        for db, increments in self.increments.items():
            yield from ((db, key) for key in increments)
        yield from ((ARRIVALS, device) for device in self.reports)

    def __bool__(self) -> bool:
        return bool(self.writes or self.increments or self.reports)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return (
            self.writes == other.writes
            and self.increments == other.increments
            and self._items() == other._items()
        )

    __hash__ = None  # type: ignore[assignment]  # a batch is mutable until it is submitted

    def __repr__(self) -> str:
        keys = sum(map(len, self.writes.values())) + sum(map(len, self.increments.values()))
        return f"<Batch of {keys} keys, {self.size_bytes} bytes>"

    def to_plain(self) -> list[Any]:
        """Return the batch as lists of text, bytes and integers: [[db, key, value or None or counts or reports]...]."""
        plain: list[Any] = [
            [db, key, value] for db, writes in self.writes.items() for key, value in writes.items()
        ]
        plain += [
            [db, key, dict(counts)]
            for db, increments in self.increments.items()
            for key, counts in increments.items()
        ]
        plain += [
            [ARRIVALS, device, list(reports.items), reports.has_head, self.removals > 0]
            for device, reports in self.reports.items()
        ]
        return plain

    @classmethod
    def from_plain(cls, plain: list[Any]) -> Batch:
        """Return the batch of which `plain` is the `to_plain` form. Raises ValueError for anything else."""
        batch = cls()
        for entry in plain:
            match entry:
                case [str(db), bytes(key), bytes(value)]:
                    batch.put(db, key, value)
                case [str(db), bytes(key), None]:
                    batch.delete(db, key)
                case [str(db), bytes(key), {**counts}] if _are_counts(counts):
                    batch.add(db, key, counts)
                case [str(), bytes(device), [*items], bool(has_head), bool(removes)]:
                    reports = batch._reports_of(device, b"".join(items))
                    reports.items += items
                    reports.has_head = has_head
                    batch.deletes |= removes
                    batch.removals += removes
                case _:
                    raise ValueError(f"{entry!r} is not an entry of a batch")
        return batch

    def _set(self, db: str, key: bytes, value: bytes | None) -> None:
        writes = self.writes.get(db)
        if writes is None:
            if db not in _KNOWN:
                raise ValueError(f"{db!r} is not a database")
            self.writes[db] = {key: value}
        else:
            writes[key] = value
        if self.increments:
            increments = self.increments.get(db)
            if increments is not None and increments.pop(key, None) is not None and not increments:
                del self.increments[db]


def _are_counts(counts: Mapping[Any, Any]) -> TypeGuard[Mapping[str, int]]:
    for name, count in counts.items():  # noqa: SIM110 - runs for each report, and is twice as fast as `all`
        if type(name) is not str or type(count) is not int:
            return False
    return True


def _key_bytes(key: bytes) -> int:
    """The length of a key. Raises TypeError or ValueError if LMDB cannot store it."""
    if type(key) is not bytes:
        raise TypeError("a key is bytes")
    size = len(key)
    if not 0 < size <= KEY_BYTES_MAX:
        raise ValueError(f"a key has 1 to {KEY_BYTES_MAX} bytes, not {size}")
    return size
