"""The kinds of alarm rules, and of groups of people that they tell."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind

ALARM_RULE: Final = Kind(
    name="alarmRule", noun="alarm rule", counted_as="alarmRuleCount", audited_as="AlarmRule"
)

ALARM_GROUP: Final = Kind(
    name="alarmGroup", noun="alarm group", counted_as="alarmGroupCount", audited_as="AlarmGroup"
)
