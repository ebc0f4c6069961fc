"""What bundles add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.portability.bundles.clone import CLONE
from trunkline.actors.portability.bundles.export import APPLICATION_EXPORT
from trunkline.actors.portability.bundles.import_jobs import IMPORT_INTO, IMPORT_NEW
from trunkline.actors.portability.bundles.import_logs import ListImportLogs, list_import_logs

FEATURE: Final = Feature(
    jobs=(CLONE, APPLICATION_EXPORT, IMPORT_INTO, IMPORT_NEW),
    readers={ListImportLogs: list_import_logs},
)
