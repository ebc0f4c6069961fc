"""What archives add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.portability.archives.archives import Archives
from trunkline.actors.portability.archives.jobs import ARCHIVE_DATA, ARCHIVE_EVENTS, ARCHIVE_TABLES, BACKFILL


def _parts(start: Start) -> Iterator[object]:
    yield Archives(start.settings, start.system.store.keyring)


FEATURE: Final = Feature(
    parts=_parts,
    jobs=(ARCHIVE_DATA, BACKFILL, ARCHIVE_TABLES, ARCHIVE_EVENTS),
)
