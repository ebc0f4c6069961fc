"""The kind of alarm rules."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind

ALARM_RULE: Final = Kind(
    name="alarmRule", noun="alarm rule", counted_as="alarmRuleCount", audited_as="AlarmRule"
)
