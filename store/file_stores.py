"""Where the files of a data directory are that are not in its store: contents of files, and results of jobs.

Owns which object store that is. Does not own the place that the directory remembers (`contents_location.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import structlog

from trunkline.store.blobs import BUFFER_BYTES, Blobs
from trunkline.store.contents_location import ContentsPlace, FolderPlace, remember
from trunkline.store.directory import CONTENTS
from trunkline.store.errors import StoreUnreachable
from trunkline.store.leftovers import SHARED_LEFT_S
from trunkline.store.object_store import ObjectStore
from trunkline.store.s3 import S3Store

RESULTS: Final = "results"

_log = structlog.get_logger("trunkline.store")


def contents_at(directory: Path, place: ContentsPlace | None) -> ObjectStore:
    """The contents of files of a data directory, to be read."""
    if place is None:
        return Blobs(directory / CONTENTS)
    if isinstance(place, FolderPlace):
        return Blobs(Path(place.path))
    return S3Store(place, part_bytes=0, connections=1)


def prepared_contents(
    directory: Path, place: ContentsPlace | None, *, part_bytes: int, connections: int, left_s: float
) -> ObjectStore:
    """The same, to be written as well; what was left incomplete is removed (`leftovers.py`). Raises StoreError."""
    folder = Blobs.prepare(directory / CONTENTS, left_s=left_s)
    remember(directory, place)
    if place is None:
        return folder
    if isinstance(place, FolderPlace):
        return Blobs.prepare(Path(place.path), left_s=SHARED_LEFT_S)
    return S3Store.prepare(place, part_bytes=part_bytes, connections=connections, left_s=left_s)


def prepared_results(directory: Path, contents: ObjectStore | None) -> tuple[Blobs | None, ObjectStore]:
    """The results of the jobs of a partition that are in the directory that it has, and where its results are.

    With `contents` they are beside the contents that all machines reach, also those that were made before. Raises
    StoreError.
    """
    own = Blobs.prepare(directory / RESULTS)
    if contents is None:
        return own, own
    common = contents.within(RESULTS)
    try:
        for name in own.names():
            _carry(name, own, common)
    except StoreUnreachable as failure:  # the next start does it
        _log.error(
            "results of earlier jobs are not carried to where all machines reach them", reason=str(failure)
        )
    return None, common


def _carry(name: str, source: ObjectStore, target: ObjectStore) -> None:
    content = source.open(name)
    if content is None:
        return
    with content, target.write(name) as draft:
        while piece := content.read(BUFFER_BYTES):
            draft.write(piece)
        draft.finish()
    source.remove(name)
