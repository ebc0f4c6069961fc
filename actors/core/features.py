"""What every server has: users and applications, and the reads of plain resources."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.core.records.kinds import APPLICATION, USER
from trunkline.actors.core.records.messages import GetRecord, ListRecords
from trunkline.actors.core.records.resource import get_record, list_records

FEATURES: Final = (
    Feature(
        kinds=(USER, APPLICATION),
        resource_readers={GetRecord: get_record, ListRecords: list_records},
    ),
)
