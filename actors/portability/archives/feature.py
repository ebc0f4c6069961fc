"""What archives add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.portability.archives.jobs import ARCHIVE_DATA, ARCHIVE_EVENTS, ARCHIVE_TABLES, BACKFILL

FEATURE: Final = Feature(
    jobs=(ARCHIVE_DATA, BACKFILL, ARCHIVE_TABLES, ARCHIVE_EVENTS),
)
