"""Notices: who is to be told of an alarm, and when. Pure: no actor, no clock.

Owns the stored form and each step from one notice to the next. Does not own sending (`data/events/alarm_sender.py`).

A notice begins when the alarm opens. Its steps follow each other until somebody acknowledges or resolves the event, or
the alarm ends. In quiet hours it waits until they are over. A receiver that cannot be reached is tried again some times
(`outgoing_attempts_max`); then the others go on, and the event says whom it did not reach.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from trunkline.actors.core.outgoing.http_calls import check_url
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.store.codec import decode, encode

PARKED_MS: Final = 2**62
"""When a notice is due that waits for the end of its alarm only."""

Next = Literal["send", "tell end", "wait", "drop"]


class Notice(msgspec.Struct, array_like=True):
    """Who is still to be told of one alarm.

    `step` is the next one, the number of all of them for a repetition. `left` are those whom this step has not reached
    yet, None before it begins; `attempts` how often they were tried. `rounds` counts the steps that were done,
    `is_told` whether they reached anybody. `has_ended`: the alarm has ended by itself.
    """

    rule: bytes
    device: bytes
    opened_ms: int
    due_ms: int
    step: int = 0
    left: list[str] | None = None
    attempts: int = 0
    rounds: int = 0
    is_told: bool = False
    has_ended: bool = False

    def encoded(self) -> bytes:
        """The stored bytes."""
        return encode(list(msgspec.structs.astuple(self)))

    @classmethod
    def decoded(cls, raw: bytes) -> Notice:
        """That of which `raw` are the stored bytes."""
        return cls(*decode(raw))


def first_notice(rule: bytes, doc: Doc, device: bytes, opened_ms: int) -> Notice | None:
    """The notice of an alarm that has opened; None if the rule tells nobody."""
    notify = doc.get("notify")
    if not notify:
        return None
    return Notice(rule, device, opened_ms, opened_ms + _after_ms(notify["steps"][0]))


def next_of(notice: Notice, notify: Doc | None, state: str | None, now_ms: int) -> Next:
    """What is to be done now. `state` is that of the event, None if it is gone."""
    if not notify or state is None:
        return "drop"
    if state == "resolved":
        return "tell end" if notice.has_ended and notice.is_told and notify.get("tellsEnd") else "drop"
    if state == "acknowledged":
        return "wait" if notify.get("tellsEnd") and notice.is_told else "drop"
    return "send" if notice.due_ms <= now_ms else "wait"


def due_steps(notice: Notice, notify: Doc) -> list[Doc]:
    """The steps whose people are to be told now."""
    steps: list[Doc] = notify["steps"]
    return steps[: notice.step] if notice.step >= len(steps) or notice.has_ended else [steps[notice.step]]


def advance(notice: Notice, notify: Doc, now_ms: int) -> bool:
    """The step is done. False if nobody is to be told any more."""
    steps = notify["steps"]
    notice.left, notice.attempts = None, 0
    notice.rounds += 1
    if notice.has_ended:
        return False
    notice.step = min(notice.step + 1, len(steps))
    if notice.step < len(steps):
        notice.due_ms = max(notice.opened_ms + _after_ms(steps[notice.step]), now_ms)
    elif "repeatSeconds" in notify:
        notice.due_ms = now_ms + round(1000 * float(notify["repeatSeconds"]))
    else:
        notice.due_ms = PARKED_MS
        return bool(notify.get("tellsEnd"))
    return True


def quiet_until(notify: Doc, now_ms: int) -> int | None:
    """When the quiet hours of now are over; None if it is not quiet."""
    quiet = notify.get("quietHours")
    if quiet is None or quiet["start"] == quiet["end"]:
        return None
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(quiet.get("timeZone", "UTC")))
    start, end, clock = quiet["start"], quiet["end"], f"{now:%H:%M}"
    is_quiet = start <= clock < end if start < end else clock >= start or clock < end
    if not is_quiet:
        return None
    hour, minute = map(int, end.split(":"))
    over = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if over <= now:
        over = (now + timedelta(days=1)).replace(hour=hour, minute=minute, second=0, microsecond=0)
    return round(over.timestamp() * 1000)


def check_notices(notify: Doc, private: Callable[[str], bool]) -> None:
    """Raise `Invalid` unless each step tells somebody, later than the one before, and the time zone is known."""
    before = -1.0
    for position, step in enumerate(notify["steps"]):
        at = f"notify.steps[{position}]"
        if not any(step.get(field) for field in ("emails", "userIds", "groupIds", "url")):
            raise Invalid(f"{at}: tells nobody; give emails, userIds, groupIds or url.")
        if "url" in step:
            check_url(step["url"], private=private(step["url"]), field=f"{at}.url")
        if step.get("afterSeconds", 0) <= before:
            raise Invalid(f"{at}.afterSeconds: must be more than that of the step before, {before:g}.")
        before = step.get("afterSeconds", 0)
    quiet = notify.get("quietHours")
    if quiet is not None:
        try:
            ZoneInfo(quiet.get("timeZone", "UTC"))
        except (ValueError, OSError, KeyError):
            raise Invalid(
                f"notify.quietHours.timeZone: {quiet['timeZone']} is not known; give a name such as Europe/Berlin."
            ) from None


def _after_ms(step: Doc) -> int:
    return round(1000 * float(step.get("afterSeconds", 0)))
