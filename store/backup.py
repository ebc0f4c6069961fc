"""Backups of a store that is in use, and verification of a store or a backup.

Owns copying and verifying; both only read the store. A backup has the layout of a data directory (without the
lock), so a backup is restored by starting the server on a copy of it, and `verify` accepts both.

The copy is one snapshot: LMDB writes the pages of one read transaction, and the commits of another process
continue meanwhile. It is made under a temporary name and renamed when all of it is on disk, so an incomplete
backup is never mistaken for a complete one.

The contents of files are copied after that: those that the records in the copy name, each compared with its hash.
While they are copied, the sweep of a running server removes none, so all of them are there.

A process never copies a store that it writes itself. To start a copy, LMDB takes the lock of the writer for a
moment, and py-lmdb 3 lets the abort of a write transaction, which holds that lock, wait for every running call
of its own process. So a copy and a commit that needs a larger map would wait for each other forever.
"""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol

import lmdb

from trunkline.store import codec, keys, pages
from trunkline.store.arrived_copies import arrived, foreign, is_given
from trunkline.store.backup_contents import NamedContents, copy_contents, no_contents
from trunkline.store.blobs import Blobs
from trunkline.store.checksums import opened
from trunkline.store.contents_location import FILE as CONTENTS_LOCATION
from trunkline.store.directory import (
    CONTENTS,
    DATA_FILE,
    KEYS_FILE,
    LAST_BACKUP,
    LOCK_FILE,
    SECRET,
    STORE,
    check_secret,
    data_file,
    has_data,
    missing_secret,
    sync_directory,
    write_private,
)
from trunkline.store.errors import BackupRefused, StoreDamaged, StoreError, translate
from trunkline.store.manifest import manifest_problems, write_manifest
from trunkline.store.memory_map import MemoryMap
from trunkline.store.migrations import FORMAT, other_format, refuse_to_copy, stored_format
from trunkline.store.partitions import partition_count, partition_directory, without_moves
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_files import (
    copy_file,
    copy_partitions,
    held_state,
    open_read_only,
    opened_read_only,
    snapshot_of_partition,
)
from trunkline.store.timeline_check import run_problems, value_problems

PROBLEMS_MAX: Final = 1000
"""At most this many problems are described; further ones are only counted."""

_NOT_CBOR: Final = frozenset({keys.INDEXES, keys.UNIQUE, keys.CELLS, keys.TRIGGERS})
"""Databases with values of other forms: whoever writes triggers checks them."""
_TIMELINE: Final = frozenset({keys.ARRIVALS, keys.SEGMENTS, keys.RUNS})


class OpenStore(Protocol):
    """The parts of a `Store` that this module uses. A protocol, because `env.py` imports this module."""

    memory_map: MemoryMap


def backup(
    directory: Path,
    target: Path,
    contents: NamedContents = no_contents,
    check: Callable[[Path], None] = lambda _copy: None,
) -> None:
    """Copy the data directory `directory` to `target`, which must be missing or empty. On disk when this returns.

    `contents` names the files to copy beside the store; `check` raises BackupRefused for a copy that is not whole.
    Another process may be using the directory; if this process has it open, StoreBroken is raised. The other
    process continues to commit, and each commit is in the copy completely or not at all. Of several partitions each
    is copied as it is at a moment, the first one last: what applications name of the server as a whole is in it
    then. No application is moved meanwhile. Raises FormatUnsupported for a store of a newer program, whose contents
    this one may not find, StoreBroken for one of several partitions without the others, SecretMissing,
    BackupRefused, StoreFull or StoreBroken; `target` is then not created. BackupRefused also where a process has
    started meanwhile and completed a move that had been interrupted.
    """
    blobs = Blobs(directory / CONTENTS)
    with ExitStack() as stack:
        places = [partition_directory(directory, number) for number in range(partition_count(directory))]
        first, *others = [stack.enter_context(opened_read_only(place)) for place in places]
        for place, memory_map in zip(places, (first, *others), strict=True):
            refuse_to_copy(memory_map, len(places), place)

        def copy_more(copy: Path) -> None:
            if any(noted.get(each) and not is_kept for each, is_kept in _noted(copy, len(places)).items()):
                raise BackupRefused(
                    "A move of an application was completed while its partitions were copied. Make the backup again."
                )
            check(copy)
            for number in range(len(places)):
                copy_contents(blobs, copy, number, contents)
            for number in range(len(places)):
                (partition_directory(copy, number) / STORE / LOCK_FILE).unlink(missing_ok=True)

        if (directory / CONTENTS).is_dir():
            stack.enter_context(blobs.kept())
        stack.enter_context(without_moves(directory))
        noted = _noted(directory, len(places))
        copy_store(first, directory, target, copy_more, others)
    with suppress(OSError):  # the backup is complete; the note of it is only for the metrics of the server
        (directory / LAST_BACKUP).touch()


def _noted(directory: Path, count: int) -> dict[tuple[bytes, int], bool]:
    """By application and partition, for each note of an arrival there: whether the application was given away to it.

    A process that starts removes the note, and then the other one what says that. So a copy could have only the note.
    """
    found: dict[tuple[bytes, int], bool] = {}
    for number in range(count) if count > 1 else ():
        with snapshot_of_partition(directory, number) as part:
            for application, source in arrived(part):
                with snapshot_of_partition(directory, source) as there:
                    found[application, number] = is_given(there, application, number)
    return found


def copy_store(
    memory_map: MemoryMap,
    directory: Path,
    target: Path,
    copy_more: Callable[[Path], None] = lambda _copy: None,
    others: Sequence[MemoryMap] = (),
) -> None:
    """Copy the contents of `memory_map`, the secret and the encryption keys in `directory` to `target`.

    `copy_more` is called with the copy before it gets its name. `others` are the stores of further partitions.

    This process must not write to any of them meanwhile. Errors are those of `backup`.
    """
    check_secret(directory)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise BackupRefused(
                f"{target} exists and is not empty. Name a directory that does not exist yet."
            )
        draft.mkdir(mode=0o700, parents=True)
        try:
            copy_partitions(others, draft)
            copy_file(memory_map, draft)
            for name in (SECRET, KEYS_FILE, CONTENTS_LOCATION):
                if (directory / name).exists():
                    write_private(draft / name, (directory / name).read_bytes())
            copy_more(draft)
            names = (f"{STORE}/{DATA_FILE}", SECRET, KEYS_FILE, CONTENTS_LOCATION)
            write_manifest(draft, [name for name in names if (draft / name).exists()])
            try:
                draft.rename(target)
                sync_directory(target.parent)
            except OSError:
                with suppress(OSError):  # it may have its name already
                    target.rename(draft)
                raise
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except (lmdb.Error, OSError) as error:
        raise translate(error, f"backup to {target}") from error


@dataclass(slots=True)
class Report:
    """The result of `verify`. `problems` are sentences, at most PROBLEMS_MAX; `problem_count` counts all.

    `stage` is what is being read. A subclass may override `begin`, `add` and `counted` to tell of each at once.
    """

    format: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    stage: str = ""

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return self.problem_count == 0

    def begin(self, stage: str) -> None:
        """Note what is being read from now on."""
        self.stage = stage

    def counted(self, db: str, entries: int) -> None:
        """Note that a database was read to its end, and the number of its entries."""
        self.counts[db] = entries

    def add(self, problem: str) -> None:
        """Count one more problem, and keep its sentence up to PROBLEMS_MAX."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


IndexKeys = Callable[[bytes, Any], Iterable[bytes]]
"""Returns the index keys that a record must have, from its key and its document: the callers know the indexes."""


Problems = Callable[[Snapshot], Iterable[str]]
"""Returns problems in data that this package does not interpret, such as the rows of data tables."""


def verify(
    source: OpenStore | Path,
    index_keys: IndexKeys = lambda _key, _document: (),
    problems: Problems = lambda _snapshot: (),
    report: Report | None = None,
    *,
    common: Path | None = None,
) -> Report:
    """Read everything in a store (a data directory, in use or not, a backup, or an open store) and report.

    `common` is the data directory that has the secret, if `source` is the directory of another partition.

    Of a directory the pages of the file are verified first, without LMDB, and the files of a backup are compared
    with its manifest. Then every value is decoded; every index entry must point to a record and be one of the
    `index_keys` of that record; each of the `index_keys` must exist; every counter of records must be right; and
    `problems` adds further checks.

    Raises BackupRefused or StoreBroken if there is no store at all. Of a damaged page LMDB may end the process:
    then `report` has been told of everything before. Takes long: call it in a worker thread or another process.
    """
    report = report or Report()
    if not isinstance(source, Path):
        return _verify(source.memory_map, report, index_keys, problems)
    if not _verify_files(source, report, common or source):
        return report
    report.begin("opening of the store")
    memory_map = open_read_only(source)
    try:
        return _verify(memory_map, report, index_keys, problems)
    finally:
        memory_map.close(0)


def _verify_files(directory: Path, report: Report, common: Path) -> bool:
    """Verify what does not need LMDB: the manifest, the secret, the pages. False if LMDB cannot open the file."""
    file = data_file(directory)
    if not has_data(directory):
        raise BackupRefused(f"{directory} holds no store: there is no {file}, or it is empty.")
    report.begin("comparison with the manifest")
    for problem in manifest_problems(directory):
        report.add(problem)
    if not (common / SECRET).exists():
        report.add(missing_secret(common))
    report.begin("reading of the pages")
    try:
        with held_state(directory):
            for problem in pages.inspect(file).problems:
                report.add(f"{file} is damaged: {problem}")
    except StoreDamaged as damage:
        report.add(f"{file} is damaged: {damage}")
        return False
    return True


def _verify(memory_map: MemoryMap, report: Report, index_keys: IndexKeys, problems: Problems) -> Report:
    report.begin("reading of the format")
    try:
        report.format = stored_format(memory_map)
        if report.format != FORMAT:
            report.add(other_format(report.format, memory_map.path.parent))
            return report
    except StoreError as error:
        report.add(str(error))
    with ExitStack() as held:
        snapshot = held.enter_context(Snapshot(memory_map))
        partial = _partial(snapshot)
        for db in keys.DATABASES:
            if db not in snapshot.databases():
                if db == keys.MESSAGES and not memory_map.has_unknown_databases():
                    report.counted(db, 0)  # of a version before it: a start makes it
                else:
                    report.add(f"The database {db} is missing.")
                continue
            report.begin(f"reading of the database {db}")
            if not _check_database(snapshot, db, report, index_keys, partial):
                snapshot = held.enter_context(Snapshot(memory_map))  # LMDB has ended the transaction
        report.begin("comparison of the databases")
        if keys.RECORDS in report.counts and keys.COUNTS in report.counts:
            _check_totals(snapshot, report, partial)
        if len(report.counts) == len(keys.DATABASES):
            try:
                for problem in chain(run_problems(snapshot), problems(snapshot)):
                    report.add(problem)
            except StoreError as error:
                report.add(str(error))
    return report


def _partial(snapshot: Snapshot) -> frozenset[bytes]:
    """The applications whose records, indexes and counters need not agree, because they are another partition's."""
    try:
        return foreign(snapshot) if keys.META in snapshot.databases() else frozenset()
    except StoreError:  # reported with its database
        return frozenset()


def _check_totals(snapshot: Snapshot, report: Report, partial: Container[bytes]) -> None:
    """Compare every counter of records with the number of the records."""
    found: Counter[bytes] = Counter()
    for key in snapshot.keys(keys.RECORDS, b"", None):
        if keys.is_record_key(key):
            found[bytes(key[: -keys.ID_BYTES])] += 1
    counted: dict[bytes, Any] = {}
    for key, stored in snapshot.stored(keys.COUNTS, keys.TOTAL_PREFIX, keys.prefix_end(keys.TOTAL_PREFIX)):
        with suppress(ValueError):  # a damaged value is reported by `_check_database`
            counted[key[len(keys.TOTAL_PREFIX) :]] = codec.decode(opened(key, stored) or b"").get("n", 0)
    for prefix in sorted(found.keys() | counted.keys()):
        if found[prefix] != counted.get(prefix, 0) and prefix[-keys.ID_BYTES :] not in partial:
            report.add(
                f"records {prefix.hex()}: {found[prefix]} are there, {counted.get(prefix, 0)} are counted."
            )


def _check_database(
    snapshot: Snapshot, db: str, report: Report, index_keys: IndexKeys, partial: Container[bytes]
) -> bool:
    """Check every entry of a database. False if it could not be read to its end."""
    entries = 0
    try:
        for key, stored in snapshot.stored(db, b"", None):
            entries += 1
            value = opened(key, stored)
            if value is None:
                report.add(f"{db} {key.hex()}: it is not what was written, its checksum is wrong")
                continue
            for problem in _entry_problems(snapshot, db, key, value, index_keys, partial):
                report.add(f"{db} {key.hex()}: {problem}")
    except StoreError as error:
        report.add(f"{db}: after {entries} entries: {error}")
        return False
    report.counted(db, entries)
    if entries != snapshot.count(db, b"", None):
        report.add(f"{db}: {entries} entries can be read, {snapshot.count(db, b'', None)} are recorded.")
    return True


def _entry_problems(
    snapshot: Snapshot,
    db: str,
    key: bytes,
    value: bytes,
    index_keys: IndexKeys,
    partial: Container[bytes],
) -> Iterator[str]:
    """The problems of one entry."""
    if db == keys.INDEXES:
        yield from _index_problems(snapshot, key, index_keys, partial)
    if db in _TIMELINE:
        yield from value_problems(db, key, value)
        return
    problem = form_problem(db, key, value)
    if problem is not None:
        yield problem
    elif db == keys.RECORDS and _parent(key) not in partial:
        for index in index_keys(key, codec.decode(value)):
            with suppress(StoreDamaged):  # the damaged entry is reported with its own key
                if snapshot.get(keys.INDEXES, index) is None:
                    yield f"its index entry {index.hex()} is missing"


def form_problem(db: str, key: bytes, value: bytes) -> str | None:
    """What is wrong with the form of a value, which is CBOR but for the exceptions that `keys.py` names."""
    if db in _NOT_CBOR or not value or (db == keys.EVENTS and keys.is_open_alarm_key(key)):
        return None
    try:
        codec.decode(value)
    except ValueError as error:
        return f"the value is {error}"
    return None


def _parent(record_key: bytes) -> bytes:
    return record_key[-2 * keys.ID_BYTES : -keys.ID_BYTES]


def _index_problems(
    snapshot: Snapshot, key: bytes, index_keys: IndexKeys, partial: Container[bytes]
) -> Iterator[str]:
    try:
        record_key = keys.record_of_index(key)
    except ValueError as error:
        yield str(error)
        return
    if _parent(record_key) in partial:
        return
    try:
        raw = snapshot.get(keys.RECORDS, record_key)
        if raw is None:
            yield f"the index entry points to no record ({record_key.hex()})"
            return
        document = codec.decode(raw)
    except (ValueError, StoreDamaged):
        return  # the damaged record is reported with its own key
    expected = list(index_keys(record_key, document))
    if expected and key not in expected:
        yield f"the record {record_key.hex()} does not know of this index entry"
