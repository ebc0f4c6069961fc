"""What events add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.data.events import messages, reads
from trunkline.actors.data.events.actor import EventLog
from trunkline.actors.data.events.alarm_list import list_alarms
from trunkline.actors.data.events.alarm_messages import ListAlarms
from trunkline.actors.data.events.alarm_sender import AlarmSender
from trunkline.actors.data.events.alarm_trial import try_alarm_rule
from trunkline.actors.data.events.changes import get_missed_changes
from trunkline.actors.data.events.export import EVENT_EXPORT
from trunkline.actors.data.events.jobs import DELETE_EVENTS, PATCH_EVENTS
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.retention import ExpireEvents, search_events
from trunkline.actors.fleet.alarms.messages import TryAlarmRule


def _parts(start: Start) -> Iterator[object]:
    yield AlarmSender(start.system)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(AlarmSender,),
    moved=(AlarmSender,),
    expiries=(Expiry(search_events, {ExpireEvents: ("event",)}),),
    kinds=(EVENT,),
    actors=(EventLog,),
    fields=(messages.EVENT_FIELDS,),
    jobs=(EVENT_EXPORT, PATCH_EVENTS, DELETE_EVENTS),
    readers={
        messages.GetEvent: reads.get_event,
        messages.GetMissedChanges: get_missed_changes,
        messages.ListEvents: reads.list_events,
        ListAlarms: list_alarms,
        TryAlarmRule: try_alarm_rule,
        messages.GetMostRecentEvent: reads.get_most_recent_event,
    },
)
