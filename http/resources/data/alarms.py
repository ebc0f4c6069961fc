"""Alarm rules, the groups that they tell, and the alarms that are open. The event of an alarm is acknowledged like any
other.
"""

from __future__ import annotations

from typing import Final

from trunkline.actors.data.events.alarm_messages import AlarmList, AlarmPage, ListAlarms
from trunkline.actors.fleet.alarms.groups import ALARM_GROUPS
from trunkline.actors.fleet.alarms.messages import AlarmRulePost, TriedAlarmRule, TryAlarmRule
from trunkline.actors.fleet.alarms.rules import ALARM_RULES
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH
from trunkline.http.calls.verbs import get, post

_TOO_WARM: Final = {
    "name": "Too warm",
    "severity": "error",
    "condition": {
        "type": "attribute",
        "attribute": "temperature",
        "comparison": "above",
        "value": 30,
        "hysteresis": 2,
    },
    "durationSeconds": 120,
}
ROUTES = (
    *resource_routes(
        APP_PATH + "/alarm-groups",
        ALARM_GROUPS,
        examples=(
            {"name": "Night shift", "emails": ["night.shift@example.com"]},
            {"emails": ["night.shift@example.com", "manager@example.com"]},
        ),
    ),
    *resource_routes(
        APP_PATH + "/alarm-rules",
        ALARM_RULES,
        examples=(
            _TOO_WARM,
            {"enabled": False},
        ),
    ),
    post(
        APP_PATH + "/alarm-rules/try",
        "alarmRules.try",
        "Show which alarms a rule would have opened in the last day, without saving it",
        TryAlarmRule,
        body=AlarmRulePost,
        reply=TriedAlarmRule,
        example=_TOO_WARM,
        access="read",
    ),
    get(
        APP_PATH + "/alarms",
        "alarms.get",
        "List the open alarms, the most severe first",
        ListAlarms,
        AlarmList,
        query=AlarmPage,
    ),
)
