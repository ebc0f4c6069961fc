"""What alarm rules add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.portable import portable
from trunkline.actors.fleet.alarms.groups import ALARM_GROUPS
from trunkline.actors.fleet.alarms.index import AlarmIndex
from trunkline.actors.fleet.alarms.outbox import AlarmOutbox
from trunkline.actors.fleet.alarms.rules import ALARM_RULES


def _parts(start: Start) -> Iterator[object]:
    yield AlarmIndex(start.system)
    yield AlarmOutbox(start.system)


FEATURE: Final = Feature(
    resources=(ALARM_RULES, ALARM_GROUPS),
    parts=_parts,
    tasks=(AlarmOutbox,),
    moved=(AlarmIndex, AlarmOutbox),
    portable=(
        portable("AlarmGroup", ALARM_GROUPS, created_by="alarmGroups.post"),
        portable("AlarmRule", ALARM_RULES, created_by="alarmRules.post"),
    ),
)
