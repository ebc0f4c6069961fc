"""The sender of notices: tells people of alarms, by mail and by calls, when their notices are due.

Owns when a notice is looked at, one attempt to send it, and its texts. Does not own what is due
(`fleet/alarms/notices.py`) nor what is stored of it: the event log does.

A notice is stored in the batch of its event, and its next step after the receivers have accepted it. So each step is
sent, and one that was under way when the server was killed is sent again: with the same Message-ID, or the same
`Idempotency-Key`. An application sends `alarm_notices_max` messages at once, then one each `alarm_notice_interval_s`;
what is over it waits, and is not sent at all if the alarm ends meanwhile.
"""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog
import trio

from trunkline.actors.core.outgoing.http_calls import Undelivered, post, shown_receiver
from trunkline.actors.core.outgoing.mail import Mail, MailMessage
from trunkline.actors.core.outgoing.mail_rate import MailRate
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.owners import Owners
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.works import Works
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.events.alarm_causes import NO_DEVICE
from trunkline.actors.data.events.alarm_messages import SettleNotice
from trunkline.actors.data.events.kind import EVENT
from trunkline.actors.fleet.alarms.kind import ALARM_RULE
from trunkline.actors.fleet.alarms.notices import Notice, advance, due_steps, next_of, quiet_until
from trunkline.actors.fleet.alarms.people import receivers
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.platform.jobs.results import Results
from trunkline.actors.workflows.flows.due_times import DueTimes, Place
from trunkline.actors.workflows.triggers.alarm import Alarm
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

_AT_ONCE: Final = 64
_RETRY_MS: Final = 1_000
_RECEIVERS: Final = 11
"""A notice to more receivers counts as several."""

_log = structlog.get_logger("trunkline.alarms")


class _Told(NamedTuple):
    """An alarm with all that its receivers are told of it."""

    application: bytes
    id: bytes
    notice: Notice
    event: Doc
    rule: Doc
    device: str
    receivers: list[str]


class AlarmSender(Moved):
    """Sends the notices of one system. A component; run `run` in a nursery for as long as it is used."""

    def __init__(self, system: System) -> None:
        limits = system.limits
        self._system = system
        self._due = DueTimes(system.moves.away)
        system.forgotten.append(self._due.forget)
        self._works = Works(system.moves.away)
        self._busy: dict[Place, bool] = {}
        """Notices that are worked on, and whether they are to be looked at again."""
        self._rate = MailRate(limits.alarm_notices_max, limits.alarm_notice_interval_s)
        self._shares = OwnerShares("notices", limits.outgoing_deliveries_max, sys.maxsize, leaves=1)
        self._nursery: trio.Nursery | None = None
        self.alarm = Alarm(system.clock, self._due, _AT_ONCE, self._ring, _nothing)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is worked on."""
        return not self._busy

    def set(self, application: bytes, event: bytes, due_ms: int) -> None:
        """A notice is stored that is due then."""
        place = (application, event)
        if place in self._busy:
            self._busy[place] = True
        else:
            self._due.set(place, due_ms)

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        await self._load()
        async with trio.open_nursery() as self._nursery:
            await self.alarm.run()

    async def leave(self, application: bytes) -> None:
        """Send no more notices of an application. One that is under way is sent again where it comes."""
        await self._works.end(application)

    async def come(self, application: bytes) -> None:
        """Send the notices of an application."""
        await self._load(application)

    async def _load(self, application: bytes = b"") -> None:
        """Note when the notices of the store are due, or those of an application."""
        for place in await self._system.read(partial(_stored, application)):
            self.set(*place)

    async def _ring(self, places: list[Place], _now_ms: int) -> None:
        assert self._nursery is not None
        for place in places:
            self._busy[place] = False
            self._nursery.start_soon(self._work, place)

    async def _work(self, place: Place) -> None:
        due_ms: int | None = self._system.clock.wall_ms() + _RETRY_MS
        try:
            with self._works.of(place[0]):
                due_ms = await self._send(*place)
        except NotFound:
            due_ms = None  # the application is deleted
        except DomainError as refusal:
            _log.warning("notice postponed", id=place[1].hex(), reason=refusal.message)
        except Exception:  # noqa: BLE001 - a bug here must not end the others' notices
            _log.exception("notice not sent", id=place[1].hex())
            due_ms = None
        finally:
            again = self._busy.pop(place)
        self._due.set(place, self._system.clock.wall_ms() if again else due_ms)

    async def _send(self, application: bytes, event: bytes) -> int | None:
        """Do what is due of a notice. Returns when to look next, None if there is nothing more."""
        with self._system.store.snapshot() as snapshot:
            found = _find(snapshot, application, event)
        if found is None:
            return None
        notice, rule, state = found.notice, found.rule, found.event.get("state")
        now_ms = self._system.clock.wall_ms()
        notify = rule.get("notify") if rule.get("enabled") else None
        todo = next_of(notice, notify, state, now_ms)
        if todo == "wait":
            return notice.due_ms if state == "new" else None
        if todo == "drop" or notify is None:
            return await self._settle(application, event, None)
        quiet_ms = quiet_until(notify, now_ms)
        if quiet_ms is not None:
            return quiet_ms
        told = found.receivers
        notice.left = told if notice.left is None else [to for to in notice.left if to in told]
        notices = ceil(len(notice.left) / _RECEIVERS) or 1
        wait_s = self._rate.take(application, self._system.clock.monotonic_s(), notices)
        if wait_s:
            return now_ms + round(1000 * wait_s) + 1
        failed = await self._deliver(found)
        notice.is_told |= len(failed) < len(notice.left)
        if failed and notice.attempts + 1 < self._system.limits.outgoing_attempts_max:
            notice.left, notice.attempts = list(failed), notice.attempts + 1
            pause_s = self._system.limits.outgoing_pause_s * 2 ** (notice.attempts - 1)
            notice.due_ms = self._system.clock.wall_ms() + round(1000 * pause_s)
            return await self._settle(application, event, notice)
        comment = " ".join(
            f"{shown_receiver(to)} was not told of this alarm: {reason}" for to, reason in failed.items()
        )
        if not told:
            comment = "Nobody was told of this alarm: the users that its rule and groups name may not read it any more."
        goes_on = advance(notice, notify, self._system.clock.wall_ms())
        return await self._settle(application, event, notice if goes_on else None, comment)

    async def _settle(
        self, application: bytes, event: bytes, notice: Notice | None, comment: str = ""
    ) -> int | None:
        message = SettleNotice(event, None if notice is None else notice.encoded(), comment)
        answer = await self._system.ask(Ref("eventLog", application, application), message)
        due_ms: int | None = answer.value
        return due_ms

    async def _deliver(self, told: _Told) -> dict[str, str]:
        """Try once to reach those who are left. Returns whom it did not reach, each with the reason."""
        payer = self._system.component(Owners).of(told.application)
        failed: dict[str, str] = {}
        for to in told.notice.left or ():
            try:
                async with self._shares.place(payer):
                    if "@" in to and "://" not in to:
                        await self._mail(told, to)
                    else:
                        await self._call(told, to)
            except Undelivered as problem:
                failed[to] = str(problem)
        return failed

    async def _mail(self, told: _Told, to: str) -> None:
        base_url = self._system.component(Results).base_url
        shown = _shown(told)
        lines = [
            shown["message"],
            "" if not told.notice.has_ended else "The alarm has ended by itself.",
            *([f"Device: {told.device}"] if told.device else []),
            f"Since: {shown['openedAt']}",
            f"Level: {shown['level']}",
            "",
            f"{base_url}/console#/applications/{told.application.hex()}/events/{told.id.hex()}",
            "Acknowledge the event there, and nobody else is told.",
        ]
        ended = "Ended: " if told.notice.has_ended else ""
        mail = MailMessage(
            mail_id(told.id, told.notice.rounds, to),
            to,
            f"{ended}[{shown['level']}] {shown['subject']}",
            "\n".join(lines) + "\n",
            self._system.clock.wall_ms(),
        )
        await self._system.component(Mail).send(mail)

    async def _call(self, told: _Told, url: str) -> None:
        await post(
            url,
            msgspec.json.encode(_shown(told)),
            {"Idempotency-Key": f'"{told.id.hex()}-{told.notice.rounds}"'},
            timeout_s=self._system.limits.outgoing_timeout_s,
            private=may_be_private(self._system, url),
        )


def mail_id(event: bytes, rounds: int, to: str) -> str:
    """What a mail is recognized by if it is sent again, whoever else was reached meanwhile."""
    return f"{event.hex()}-{rounds}-{hashlib.sha256(to.encode()).hexdigest()[:16]}"


def _shown(told: _Told) -> dict[str, Any]:
    """What a call tells of an alarm."""
    notice, event = told.notice, told.event
    return {
        "type": "alarm",
        "state": "ended" if notice.has_ended else "open",
        "applicationId": told.application.hex(),
        "eventId": told.id.hex(),
        "alarmRuleId": notice.rule.hex(),
        "alarmRuleName": told.rule["name"],
        **(
            {"deviceId": notice.device.hex(), "deviceName": told.device} if notice.device != NO_DEVICE else {}
        ),
        "level": event["level"],
        "subject": event["subject"],
        "message": event.get("message", ""),
        "openedAt": iso(notice.opened_ms),
        "number": notice.rounds,
    }


def _find(snapshot: Snapshot, application: bytes, event: bytes) -> _Told | None:
    raw = snapshot.get(keys.META, keys.alarm_notice_key(application, event))
    if raw is None:
        return None
    notice = Notice.decoded(bytes(raw))
    rule = records.doc_of(snapshot, ALARM_RULE, application, notice.rule) or {}
    doc = records.doc_of(snapshot, EVENT, application, event) or {}
    detail = snapshot.get(keys.EVENTS, keys.event_detail_key(application, event))
    told: Doc = {} if detail is None else {"message": decode(detail).get("message", "")}
    device = records.doc_of(snapshot, DEVICE, application, notice.device) or {}
    steps = due_steps(notice, rule["notify"]) if rule.get("notify") else []
    to = receivers(snapshot, application, steps)
    return _Told(application, event, notice, doc | told if doc else {}, rule, device.get("name", ""), to)


def _stored(application: bytes, snapshot: Snapshot) -> list[tuple[bytes, bytes, int]]:
    prefix, size = keys.ALARM_NOTICES_PREFIX + application, keys.ID_BYTES
    return [
        (bytes(key[-2 * size : -size]), bytes(key[-size:]), Notice.decoded(bytes(raw)).due_ms)
        for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix))
    ]


async def _nothing(_now_ms: int, _was_set_back: bool) -> None:
    """Due times do not follow a clock that was set back: a step that was late stays late."""
