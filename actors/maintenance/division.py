"""The division of a data directory into partitions: `trunkline partition`.

Owns the order of its parts. No server may be running. Nothing that exists is changed until the new stores are complete
and compared; then a copy of the old ones is made, and the directory is switched over (`store/partition_switch.py`).
A division that is killed before the switch leaves the directory as it was, beside new stores that the next one or the
next start removes; one that is killed within it is completed by the next one, and until then nothing else opens the
directory.

1. What devices reported is brought into the runs (`store/offline_store.py`).
2. All entries are read, and it is decided where each application goes (`survey.py`, `shares.py`).
3. New stores are written, and compared with what was read (`new_stores.py`).
4. The old ones are copied into `backups/`.
5. The switch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.places import void_copies
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.fleet.devices.state.head import encoded_after
from trunkline.actors.maintenance.data_directory import keys_file_of
from trunkline.actors.maintenance.foreign import settle
from trunkline.actors.maintenance.new_stores import NewStores
from trunkline.actors.maintenance.shares import shares
from trunkline.actors.maintenance.survey import Source, Survey
from trunkline.store.backup import copy_store
from trunkline.store.blobs import Blobs
from trunkline.store.directory import KEYS_FILE, LOCK, DataDirectory, data_file, has_data, unused_path
from trunkline.store.env import MIB
from trunkline.store.errors import BackupRefused, StoreBroken, StoreError, translate
from trunkline.store.file_stores import RESULTS
from trunkline.store.keyring import Keyring
from trunkline.store.keys import ID_BYTES
from trunkline.store.leftovers import NEW_STORE, remove_begun_division
from trunkline.store.migrations import check_division
from trunkline.store.offline_store import OfflineStore
from trunkline.store.partition_switch import complete
from trunkline.store.partitioned import Partitions
from trunkline.store.partitions import (
    FOLDER,
    PARTITIONS_MAX,
    Switch,
    partition_count,
    partition_directory,
    stored_count,
    switch_of,
    write_switch,
)
from trunkline.store.snapshot import Snapshot
from trunkline.store.store_draft import StoreDraft
from trunkline.store.store_files import opened_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.limits.settings import Settings

TOLD_EACH_S: Final = 5.0
"""So often a line says how far it is."""
_TOLD_ENTRIES: Final = 1024
"""The clock is read after so many entries."""
_BATCHES_BYTES: Final = 64 * MIB
"""What waits to be written, of all new stores together."""

Tell = Callable[[str], None]
"""Is told sentences for the operator."""


class Partition(NamedTuple):
    """A partition as it is: the bytes of its file, and the names of its applications by their ids."""

    number: int
    size_bytes: int
    applications: dict[str, str]


def partitions_of(directory: Path) -> list[Partition]:
    """The partitions of a data directory, which a server may be using. Raises StoreError."""
    found = []
    for number in range(partition_count(directory)):
        place = partition_directory(directory, number)
        with opened_read_only(place) as memory_map, Snapshot(memory_map) as snapshot:
            void = void_copies(snapshot, directory, number)
            named = {
                each.id.hex(): each.doc["name"]
                for each in records.all_of_kind(snapshot, APPLICATION, ROOT)
                if each.id not in void
            }
        found.append(Partition(number, data_file(place).stat().st_size, named))
    return found


def divide(settings: Settings, count: int, tell: Tell) -> None:
    """Make the data directory have `count` partitions. Raises StoreError; then it can be called again."""
    directory = Path(settings.data_dir)
    if count > PARTITIONS_MAX:
        raise StoreError(f"A data directory has at most {PARTITIONS_MAX} partitions.")
    if not has_data(directory):
        raise BackupRefused(f"{directory} holds no store. Start a server on it once.")
    with ExitStack() as stack:
        locked = stack.enter_context(DataDirectory.open(directory))
        switch = switch_of(directory)
        if switch is not None:
            tell(f"Completing the change to {_partitions(switch.after)}, which was interrupted.")
            _switch(directory, switch)
        before = stored_count(directory)
        if count == before:
            remove_begun_division(directory)
            tell(f"{directory} has {_partitions(count)}.")
            return
        locked.require_secret(new=False)
        try:
            _clear(directory, before)
            _lock(stack, directory, before, count)
            _Division(settings, directory, before, count, tell).run()
        except BaseException as error:
            with suppress(OSError, StoreError):  # the next division does it
                _clear(directory, before)
                _remove_made(directory, before)
            if isinstance(error, OSError):
                raise translate(error, f"division of {directory}") from error
            raise


def _switch(directory: Path, switch: Switch) -> None:
    with ExitStack() as stack:
        _lock(stack, directory, switch.before, switch.after)
        complete(directory, switch)


def _lock(stack: ExitStack, directory: Path, before: int, after: int) -> None:
    """Lock the partitions of both numbers. Partition 0 is locked already. Raises DirectoryInUse."""
    (directory / FOLDER).mkdir(mode=0o700, exist_ok=True)
    for number in range(1, max(before, after)):
        place = partition_directory(directory, number)
        if number < after or place.exists():
            stack.enter_context(DataDirectory.open(place))


def _clear(directory: Path, count: int) -> None:
    """Remove what a division has left that was ended before its switch.

    Raises StoreBroken for a store that is not counted, and must not be replaced.
    """
    if switch_of(directory) is not None:
        return
    remove_begun_division(directory)
    for number in range(count, PARTITIONS_MAX):
        place = partition_directory(directory, number)
        if data_file(place).exists():
            raise StoreBroken(
                f"{place} holds a store, and {directory}/{FOLDER}/count says that there are {_partitions(count)}. "
                "Correct that number, or move the store away."
            )


def _remove_made(directory: Path, count: int) -> None:
    """Remove the directories that were made for partitions that there will not be."""
    if switch_of(directory) is not None:
        return
    for number in range(count, PARTITIONS_MAX):
        place = partition_directory(directory, number)
        (place / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # an operator has made it, or there is none
            place.rmdir()
    with suppress(OSError):
        (directory / FOLDER).rmdir()


class _Division:
    """One division of `directory` into `after` partitions."""

    def __init__(self, settings: Settings, directory: Path, before: int, after: int, tell: Tell) -> None:
        self._settings = settings
        self._directory = directory
        self._before = before
        self._after = after
        self._tell = tell

    def run(self) -> None:
        """Make it."""
        keys_file = keys_file_of(self._settings) or self._directory / KEYS_FILE
        keyring = Keyring.read(keys_file)
        with ExitStack() as stack:
            stores = []
            for number in range(self._before):
                store = OfflineStore(
                    partition_directory(self._directory, number),
                    map_size_bytes=self._settings.map_size_bytes,
                    keyring=keyring,
                    keys_file=keys_file,
                )
                stack.callback(store.close)
                check_division(store.memory_map, self._before, store.place)
                stores.append(store)
            if self._before > 1:
                self._settle(stores)
            sources = []
            for number, store in enumerate(stores):
                self._tell(f"Partition {number}: bringing what devices reported into the runs.")
                trio.run(store.flush, encoded_after)
                sources.append(Source(number, store))
            survey, placed = self._survey(sources)
            self._write(sources, survey, placed, keyring)
            self._copy(sources)
            results = tuple(self._results(placed))
        switch = Switch(self._before, self._after, results)
        write_switch(self._directory, switch)
        complete(self._directory, switch)
        self._report(survey, placed)

    def _settle(self, stores: Sequence[OfflineStore]) -> None:
        """Remove what does not count, and all notes of moves: in a new store one would be beside its application."""
        # Twice: that an application was given away is noted until the store that has it is settled, maybe a later one.
        for _ in range(2):
            for number, store in enumerate(stores):
                settle(store, Partitions(self._directory, number), Blobs(store.place / RESULTS))

    def _survey(self, sources: Sequence[Source]) -> tuple[Survey, dict[bytes, int]]:
        """Read the sources, and decide where each application goes."""
        with self._progress("Reading") as told:
            survey = Survey(sources, told)
        owners = survey.owners
        base = [survey.rest[number] for number in range(self._after)]
        base[0] += sum(survey.rest[number] for number in range(self._after, self._before))
        fixed = {id: owners.applications[id] for id in owners.fixed}
        sizes = {id: survey.sizes[id] for id in owners.applications.keys() - fixed.keys()}
        placed = shares(sizes, owners.applications, base, grows=self._after > self._before)
        return survey, placed | {id: now if now < self._after else 0 for id, now in fixed.items()}

    def _write(
        self, sources: Sequence[Source], survey: Survey, placed: dict[bytes, int], keyring: Keyring
    ) -> None:
        """Write the new stores, and compare them with the old ones."""
        size_bytes = sum(source.store.memory_map.used_bytes for source in sources) + 64 * MIB
        with ExitStack() as stack:
            drafts = []
            for number in range(self._after):
                draft = StoreDraft(
                    partition_directory(self._directory, number) / NEW_STORE,
                    size_bytes=size_bytes,
                    batch_bytes=max(_BATCHES_BYTES // self._after, MIB),
                )
                stack.callback(draft.close)
                drafts.append(draft)
            new = NewStores(survey, placed, drafts)
            with self._progress("Writing") as told:
                new.write(sources, told)
            for draft in drafts:
                draft.finish(keyring, divided=self._after > 1)
            with self._progress("Comparing") as told:
                new.compare(told)

    def _copy(self, sources: Sequence[Source]) -> None:
        """Copy the old stores into `backups/`, as a data directory with its partitions."""
        copies = self._directory / "backups"
        target = unused_path(copies, f"partitions-{self._before}")
        self._tell(f"Copying the stores to {target}.")
        first, *others = [source.store.memory_map for source in sources]
        copy_store(first, self._directory, target, others=others)

    def _results(self, placed: dict[bytes, int]) -> Iterator[tuple[str, int, int]]:
        """Yield the results of jobs that move, with where they are and where they will be."""
        for number in range(self._before):
            folder = partition_directory(self._directory, number) / RESULTS
            for name in Blobs(folder).names() if folder.is_dir() else ():
                target = number if number < self._after else 0
                with suppress(ValueError):  # not of a job; an operator may have put it there
                    target = placed.get(bytes.fromhex(name)[:ID_BYTES], target)
                if target != number:
                    yield name, number, target

    def _report(self, survey: Survey, placed: dict[bytes, int]) -> None:
        moved = [id for id, number in placed.items() if survey.owners.applications[id] != number]
        for id in sorted(moved):
            now = survey.owners.applications[id]
            self._tell(
                f"Moved: application {id.hex()}, {survey.sizes[id]} bytes, from {now} to {placed[id]}."
            )
        self._tell(f"{self._directory} has {_partitions(self._after)}. Applications moved: {len(moved)}.")

    @contextmanager
    def _progress(self, what: str) -> Iterator[Callable[[int], None]]:
        """Tell every few seconds how many bytes were read or written."""
        done = entries = 0
        next_s = time.monotonic() + TOLD_EACH_S

        def told(size: int) -> None:
            nonlocal done, entries, next_s
            done, entries = done + size, entries + 1
            if not entries % _TOLD_ENTRIES and time.monotonic() >= next_s:
                next_s = time.monotonic() + TOLD_EACH_S
                self._tell(f"{what}: {done / 1e6:.0f} MB.")

        self._tell(f"{what}.")
        yield told


def _partitions(count: int) -> str:
    return "one partition" if count == 1 else f"{count} partitions"
