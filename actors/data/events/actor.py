"""The event log: the only writer of the events of one application.

It is separate from the application actor because the search of a change of many events may take long, and messages to
the application must not wait for it. Its mailbox has the throttle of event creation.

It keeps no state in memory from one turn to the next. An event is stored in three parts: its record, which lists and
queries read and which is therefore small; its detail (message and data); and its updates, one entry for each. So an
update of an event with a long history writes as little as one of a new event, and reads nothing of the history. What a
turn has changed is noted for the streams of the application (`data/events/changes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.revision import check_match
from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.values.errors import ChangeTooLarge, Invalid, NotFound, PayloadTooLarge
from trunkline.actors.core.values.nesting import check_nesting
from trunkline.actors.core.values.structs import Created
from trunkline.actors.core.values.timestamps import HOUR_MS, iso, parse_report_time
from trunkline.actors.data.events.alarm_causes import Causes
from trunkline.actors.data.events.alarm_messages import SettleNotice
from trunkline.actors.data.events.alarm_order import place_alarm
from trunkline.actors.data.events.alarms import follow_alarms, settle_notice
from trunkline.actors.data.events.changes import EventChange, publish_changes, stage_changes
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.data.events.messages import (
    BeginEventJob,
    CreateEvent,
    DeleteEvent,
    DeleteEvents,
    DeleteSomeEvents,
    EventChoice,
    EventPatch,
    EventPost,
    PatchEvent,
    PatchEvents,
    PatchSomeEvents,
)
from trunkline.actors.data.events.reads import EventFilter, event_filter, matches_event, matching
from trunkline.actors.data.events.retention import ExpireEvents
from trunkline.actors.data.events.triggers import stage_event
from trunkline.actors.data.events.updates import NameOf, apply_update, source_fields, with_tags
from trunkline.actors.fleet.alarms.messages import TellAlarms
from trunkline.actors.fleet.devices.record.kind import DELETED_DEVICE, DEVICE
from trunkline.store import keys
from trunkline.store.codec import decode, encode


class Progress(msgspec.Struct, frozen=True):
    """The progress of a job: the number of changed events, the last processed id, and the last id of the job."""

    changed: int
    last: bytes
    end: bytes


class EventLog(Actor):
    """All events of one application. `ref.parent` and `ref.id` are both the application's id."""

    kind: ClassVar[str] = "eventLog"
    noun: ClassVar[str] = "application"

    __slots__ = ("_changes", "causes")

    def load(self) -> bool:
        self._changes: list[EventChange] = []
        """Those of this turn."""
        self.causes = Causes(self)
        return True  # it exists as long as its application

    def flush(self) -> None:
        self.causes.flush()
        changes, self._changes = self._changes, []
        if changes:
            number = stage_changes(self, changes)
            self.after_commit(partial(publish_changes, self.system, self.ref.id, number, changes))

    # One event.

    def on_create_event(self, message: CreateEvent) -> Created:
        """Create an event; the answer is its id."""
        return Created(self.create(message))

    def create(self, message: CreateEvent, alarm: list[bytes] | None = None) -> bytes:
        """Create an event in the turn; the answer is its id. `alarm`: the device and the rule, if it is of an alarm."""
        body = message.body
        now_ms = self.system.clock.wall_ms()
        doc: Doc = {
            "creationDate": self._created_ms(body, now_ms),
            "lastUpdated": now_ms,
            **source_fields(message.by),
            "level": body.level,
            "state": body.state,
            "subject": body.subject,
            "eventTags": {} if body.event_tags is UNSET else dict(body.event_tags),
            "updates": [0, 0],
        }
        if body.disable_tag_change_tracking:
            doc["disableTagChangeTracking"] = True
        if body.device_id is not UNSET:
            self._check_device(body.device_id)
            doc["deviceId"] = body.device_id.lower()
        detail: Doc = {}
        if body.message is not UNSET:
            detail["message"] = body.message
        if body.data is not UNSET:
            self._check_data(body.data)
            detail["data"] = body.data
        id = self.system.ids.new(now_ms)
        if detail:
            doc["detail"] = True
            self.put(keys.EVENTS, keys.event_detail_key(self.ref.id, id), encode(detail))
        if alarm is not None:
            doc["alarm"] = alarm
            place_alarm(self, id, None, doc)
        opens = self.causes.judge(id, None, doc)
        if opens:
            doc["opens"] = opens
        records.write(self, EVENT, self.ref.id, id, None, doc)
        self._changes.append(EventChange(id, "created", doc))
        self.add(keys.COUNTS, keys.app_counts_key(self.ref.id, now_ms // HOUR_MS), {"event": 1})
        stage_event(self, id, doc, detail, None, message.by, message.origin, self._device_name)
        return id

    def on_patch_event(self, message: PatchEvent) -> None:
        """Update an event."""
        raw, doc = self._found(message.event)
        check_match(message.if_match, raw)
        self._check_patch(message.body)
        self._update(message.event, doc, message, self.system.clock.wall_ms(), self._device_name)

    def on_delete_event(self, message: DeleteEvent) -> None:
        """Delete an event with its updates."""
        raw, doc = self._found(message.event)
        check_match(message.if_match, raw)
        self._erase(message.event, doc)

    def on_tell_alarms(self, message: TellAlarms) -> None:
        """Open and resolve the events of alarms."""
        follow_alarms(self, message.devices)

    def on_settle_notice(self, message: SettleNotice) -> int | None:
        """Store what is left of a notice; the answer is when it is due."""
        return settle_notice(self, message)

    def update(self, event: bytes, message: PatchEvent, *, if_open: bool = False) -> None:
        """Update an event in the turn, if it is there; with `if_open` only if it is not resolved yet."""
        doc = records.doc_of(self.system.journal, EVENT, self.ref.id, event)
        if doc is not None and not (if_open and doc["state"] == "resolved"):
            self._update(event, doc, message, self.system.clock.wall_ms(), self._device_name)

    # Many events.

    async def on_patch_events(self, message: PatchEvents) -> int:
        """Update all selected events, or none; the answer is their number."""
        self._check_patch(message.body)
        events = await self._selected(message.query)
        self._check_patch(message.body)  # the device may have been deleted during the search
        now_ms, name_of = self.system.clock.wall_ms(), cache(self._device_name)
        for id, doc in events:
            self._update(id, doc, message, now_ms, name_of)
            self._check_size()
        return len(events)

    async def on_delete_events(self, message: DeleteEvents) -> int:
        """Delete all selected events, or none; the answer is their number."""
        events = await self._selected(EventChoice(query=message.body))
        for id, doc in events:
            self._erase(id, doc)
            self._check_size()
        return len(events)

    async def _selected(self, choice: EventChoice) -> list[tuple[bytes, Doc]]:
        """Return the ids and the current documents of the events that `choice` selects, in the order of ids.

        A worker thread searches a snapshot. It does not see writes of earlier turns that are not committed yet, so
        each event is read and matched again here, where nothing else can change it until the turn ends.
        """
        most = self.system.limits.changed_events_max
        filter = event_filter(self.ref.id, choice)
        ids = await self.system.read(partial(matching, application=self.ref.id, choice=choice, most=most + 1))
        if len(ids) > most:
            raise ChangeTooLarge(f"More than {most} events match, which is the limit of one change.")
        return list(self._still_matching(ids, filter))

    def _still_matching(self, ids: Iterable[bytes], filter: EventFilter) -> Iterator[tuple[bytes, Doc]]:
        """Yield the ids and the current documents of those events that exist and match."""
        for id in ids:
            raw = records.raw_of(self.system.journal.get, EVENT, self.ref.id, id)
            if raw is not None:
                doc = decode(raw)
                if matches_event(filter, id, doc):
                    yield id, doc

    def _check_size(self) -> None:
        if self._is_full():
            most = self.system.limits.changed_events_bytes_max
            raise ChangeTooLarge(f"This change would write more than {most} bytes at once.")

    def _is_full(self) -> bool:
        size = 0 if self.batch is None else self.batch.size_bytes
        return size + self.causes.size_bytes > self.system.limits.changed_events_bytes_max

    # The parts of a job. Its progress is in the same batch as its changes, so each part is done once.

    def on_begin_event_job(self, message: BeginEventJob) -> Progress:
        """Return the progress of the job, initial or from an earlier attempt. Delete the progress of ended jobs."""
        for job in message.ended:
            self.delete(keys.META, keys.event_job_key(self.ref.id, job))
        return self._progress(message.job) or self._set_progress(message.job, Progress(0, b"", message.end))

    def on_patch_some_events(self, message: PatchSomeEvents) -> Progress:
        """Update those of the events that match, as many as one turn may write."""
        self._check_patch(message.body)
        now_ms, name_of = self.system.clock.wall_ms(), cache(self._device_name)
        return self._do_part(message, lambda event, doc: self._update(event, doc, message, now_ms, name_of))

    def on_delete_some_events(self, message: DeleteSomeEvents) -> Progress:
        """Delete those of the events that match, as many as one turn may write."""
        return self._do_part(message, self._erase)

    def _do_part(
        self, message: PatchSomeEvents | DeleteSomeEvents, change: Callable[[bytes, Doc], None]
    ) -> Progress:
        progress = self._progress(message.job)
        assert progress is not None
        changed, last, end = progress.changed, progress.last, progress.end
        left = [id for id in message.ids if last < id <= end]
        for id, doc in self._still_matching(left, event_filter(self.ref.id, message.choice)):
            change(id, doc)
            changed += 1
            if self._is_full():
                left = [id]
                break
        return self._set_progress(message.job, Progress(changed, left[-1] if left else last, end))

    def _progress(self, job: bytes) -> Progress | None:
        raw = self.system.journal.get(keys.META, keys.event_job_key(self.ref.id, job))
        return None if raw is None else Progress(*decode(raw))

    def _set_progress(self, job: bytes, progress: Progress) -> Progress:
        self.put(
            keys.META, keys.event_job_key(self.ref.id, job), encode(list(msgspec.structs.astuple(progress)))
        )
        return progress

    def on_expire_events(self, message: ExpireEvents) -> list[int]:
        """Remove those of the events that were not changed for too long; the answer is their number, in a list."""
        removed = 0
        for id in message.events:
            raw = records.raw_of(self.system.journal.get, EVENT, self.ref.id, id)
            doc: Doc = {} if raw is None else decode(raw)
            if doc and doc["lastUpdated"] < message.oldest_ms:
                self._erase(id, doc)
                removed += 1
        return [removed]

    # Staged changes of one event.

    def _update(
        self,
        id: bytes,
        doc: Doc,
        message: PatchEvent | PatchEvents | PatchSomeEvents,
        now_ms: int,
        name_of: NameOf,
    ) -> None:
        body = with_tags(message.body, doc, message.tags)
        after, update = apply_update(doc, body, message.by, now_ms, name_of)
        if update is not None:
            first, end = doc["updates"]
            self.put(keys.EVENTS, keys.event_update_key(self.ref.id, id, end), encode(update))
            end += 1
            # An event must always accept updates, so at the bound the oldest update is deleted.
            while end - first > self.system.limits.event_updates_max:
                self.delete(keys.EVENTS, keys.event_update_key(self.ref.id, id, first))
                first += 1
            after["updates"] = [first, end]
        if after != doc:
            after["opens"] = self.causes.judge(id, doc, after)
            if not after["opens"]:
                del after["opens"]
            records.write(self, EVENT, self.ref.id, id, doc, after)
            if self._is_open_alarm(id, doc):
                place_alarm(self, id, doc, after)
            self._changes.append(EventChange(id, "changed", after))
            stage_event(self, id, after, None, update, message.by, message.origin, name_of)

    def _erase(self, id: bytes, doc: Doc) -> None:
        self.causes.judge(id, doc, None)
        if self._is_open_alarm(id, doc):
            place_alarm(self, id, doc, None)
        records.erase(self, EVENT, self.ref.id, id, doc)
        self._changes.append(EventChange(id, "deleted"))
        if doc.get("detail"):
            self.delete(keys.EVENTS, keys.event_detail_key(self.ref.id, id))
        for number in range(*doc["updates"]):
            self.delete(keys.EVENTS, keys.event_update_key(self.ref.id, id, number))

    def _is_open_alarm(self, id: bytes, doc: Doc) -> bool:
        """Whether an event is that of an alarm that is open."""
        if "alarm" not in doc:
            return False
        return self.system.journal.get(keys.EVENTS, keys.open_alarm_key(self.ref.id, *doc["alarm"])) == id

    # Reads through the journal.

    def _found(self, id: bytes) -> tuple[bytes, Doc]:
        raw = records.raw_of(self.system.journal.get, EVENT, self.ref.id, id)
        if raw is None:
            raise NotFound(f"There is no event {id.hex()} here.")
        return raw, decode(raw)

    def _device_name(self, device_id: str) -> str | None:
        """Return the name of a device, also of a deleted one whose record is still kept."""
        for kind in (DEVICE, DELETED_DEVICE):
            key = keys.record_key(kind.name, self.ref.id, bytes.fromhex(device_id))
            raw = self.system.journal.get(keys.RECORDS, key)
            if raw is not None:
                return str(decode(raw)["name"])
        return None

    # Checks.

    def _check_patch(self, body: EventPatch) -> None:
        if body.device_id is not UNSET and body.device_id is not None:
            self._check_device(body.device_id)
        if body.data is not UNSET:
            self._check_data(body.data)

    def _check_device(self, device_id: str) -> None:
        key = keys.record_key(DEVICE.name, self.ref.id, bytes.fromhex(device_id))
        if self.system.journal.get(keys.RECORDS, key) is None:
            raise Invalid(f"deviceId: there is no device {device_id} in this application.")

    def _check_data(self, data: Any) -> None:
        check_nesting(data, "data")
        size, most = len(msgspec.json.encode(data)), self.system.limits.event_data_bytes_max
        if size > most:
            raise PayloadTooLarge(f"data: has {size} bytes as JSON; an event takes at most {most}.")

    def _created_ms(self, body: EventPost, now_ms: int) -> int:
        if body.creation_date is UNSET:
            return now_ms
        time_ms = parse_report_time(body.creation_date, now_ms, field="creationDate")
        if (time_ms - now_ms) / 1000 > self.system.limits.future_state_max_s:
            raise Invalid(
                f"creationDate: {iso(time_ms)} lies more than a day ahead of the server's {iso(now_ms)}; "
                "check the clock of the sender, or leave the field out for now."
            )
        return time_ms
