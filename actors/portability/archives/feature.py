"""What archives add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.portability.archives.archives import Archives
from trunkline.actors.portability.archives.jobs import ARCHIVE_DATA, ARCHIVE_EVENTS, ARCHIVE_TABLES, BACKFILL
from trunkline.actors.portability.archives.schedule import Schedule


def _parts(start: Start) -> Iterator[object]:
    store = start.system.store
    yield Archives(start.settings, store.keyring, is_shared=store.partitions is not None)
    yield Schedule(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(Schedule,),
    moved=(Schedule,),
    jobs=(ARCHIVE_DATA, BACKFILL, ARCHIVE_TABLES, ARCHIVE_EVENTS),
)
