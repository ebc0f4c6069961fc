"""What bundles add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.portability.bundles.clone import CLONE
from trunkline.actors.portability.bundles.export import APPLICATION_EXPORT
from trunkline.actors.portability.bundles.import_jobs import IMPORT_INTO, IMPORT_NEW, Imports
from trunkline.actors.portability.bundles.import_logs import ListImportLogs, list_import_logs


def _parts(_start: Start) -> Iterator[object]:
    yield Imports()


FEATURE: Final = Feature(
    parts=_parts,
    jobs=(CLONE, APPLICATION_EXPORT, IMPORT_INTO, IMPORT_NEW),
    readers={ListImportLogs: list_import_logs},
)
