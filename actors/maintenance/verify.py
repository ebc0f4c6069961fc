"""Reads a whole data directory in this process, and verifies its contents. Damaged pages may end the process.

Owns what is verified. As a program it is what `check.py` starts: it writes one JSON array a line, [what, ...values].
"""

from __future__ import annotations

import faulthandler
import json
import sys
from collections.abc import Container, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.contents.named import content_problems
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kept_answers import answer_problems
from trunkline.actors.core.records.places import void_copies
from trunkline.actors.data.files.tree import tree_problems
from trunkline.actors.data.tables.check import row_problems
from trunkline.actors.platform.jobs.results import result_problems
from trunkline.actors.workflows.triggers.intake import trigger_problems
from trunkline.store import backup
from trunkline.store.blobs import Blobs
from trunkline.store.contents_location import FOLDER, ContentsPlace, FolderPlace, location_of
from trunkline.store.directory import CONTENTS, KEYS_FILE
from trunkline.store.errors import BackupRefused, StoreError
from trunkline.store.file_stores import RESULTS, contents_at
from trunkline.store.keyring import Keyring
from trunkline.store.partitions import partition_directory, without_moves
from trunkline.store.reseal import seal_problems
from trunkline.store.s3 import S3Place
from trunkline.store.snapshot import Snapshot


def verify(
    path: Path,
    report: backup.Report | None = None,
    keys_file: Path | None = None,
    contents_place: ContentsPlace | None = None,
    partition: int = 0,
) -> backup.Report:
    """Verify a partition of the data directory or backup at `path` in this process, which damaged pages may end.

    No application is moved meanwhile: a copy that is not complete would look like damage.
    """
    place, location = partition_directory(path, partition), location_of(path)
    if contents_place is None and location.startswith("/"):
        contents_place = FolderPlace(location)  # which needs no other setting

    def problems(snapshot: Snapshot) -> Iterator[str]:
        yield from records.unique_problems(KINDS, snapshot)
        yield from row_problems(snapshot)
        yield from tree_problems(snapshot)
        yield from answer_problems(snapshot)
        yield from trigger_problems(snapshot)
        yield from _seal_problems(snapshot, keys_file or path / KEYS_FILE)
        if (place / RESULTS).is_dir():  # a backup has none
            yield from result_problems(snapshot, Blobs(place / RESULTS))
        yield from _content_problems(path, snapshot, contents_place, void_copies(snapshot, path, partition))

    folder = Path(contents_place.path) if isinstance(contents_place, FolderPlace) else path / CONTENTS
    with Blobs(folder).kept() if folder.is_dir() else nullcontext(), without_moves(path):
        return backup.verify(place, partial(records.index_keys, KINDS), problems, report, common=path)


def _content_problems(
    path: Path, snapshot: Snapshot, place: ContentsPlace | None, void: Container[bytes]
) -> Iterator[str]:
    location = location_of(path)
    if location != (FOLDER if place is None else place.location):
        yield f"The contents of files are in {location} and were not checked; give that as the setting blobs."
        return
    contents = contents_at(path, place)
    yield from content_problems(KINDS, snapshot, contents, void)
    if place is not None:
        yield from result_problems(snapshot, contents.within(RESULTS))


def _seal_problems(snapshot: Snapshot, keys_file: Path) -> Iterator[str]:
    try:
        keyring = Keyring.read(keys_file)
    except StoreError as error:
        yield str(error)
    else:
        yield from seal_problems(snapshot, keyring)


class _ToldReport(backup.Report):
    """Writes everything to standard output at once, for `check` in another process."""

    def begin(self, stage: str) -> None:
        _tell("stage", stage)

    def counted(self, db: str, entries: int) -> None:
        super().counted(db, entries)
        _tell("count", db, entries)

    def add(self, problem: str) -> None:
        _tell("problem", problem)


def _tell(*what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _main(path: Path, keys_file: Path, partition: int) -> None:
    faulthandler.enable()
    given = json.load(sys.stdin)
    place: ContentsPlace | None = None
    if given is not None:
        place = FolderPlace(**given) if "path" in given else S3Place(**given)
    report = _ToldReport()
    try:
        verify(path, report, keys_file, place, partition)
    except BackupRefused as refusal:
        _tell("refused", str(refusal))
        return
    except StoreError as error:
        report.add(str(error))
    _tell("end", report.format)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
