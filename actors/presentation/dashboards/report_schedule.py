"""The schedules of reports: what is refused, and when the next reports of a dashboard are due, as it is stored.

The due times are one value beside the dashboard. Its parent writes it with each change of `reportConfigs`, and the
actor that owns the jobs writes it in the batch of each job, so each due time queues one report, also when the server is
killed. Does not own the waiting (`scheduled_reports.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.outgoing.http_calls import check_url
from trunkline.actors.core.outgoing.mail_head import check_address
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import mandates_of, stored_mandates
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.values.errors import Forbidden, Invalid
from trunkline.actors.people.accounts.scopes import Area, scopes_of
from trunkline.actors.platform.jobs.job import JobKind
from trunkline.actors.platform.jobs.private_calls import may_be_private
from trunkline.actors.presentation.dashboards.messages import Delivery, Report, SendReport
from trunkline.actors.presentation.dashboards.report_job import APPLICATION_REPORT, USER_REPORT
from trunkline.actors.presentation.dashboards.report_options import report_options
from trunkline.actors.workflows.flows.due_times import DueTimes, Place
from trunkline.actors.workflows.flows.schedules import Schedule, schedule_of
from trunkline.store import keys
from trunkline.store.codec import decode, encode

if TYPE_CHECKING:
    from trunkline.actors.core.records.resource import Change
    from trunkline.actors.core.runtime.actor import Actor

SCHEDULER: Final = "reportsBy"
"""The field of a dashboard in whose name its reports are made: who last wrote `reportConfigs`."""
INTERVAL_MIN_S: Final = 300
"""A report may take seconds of a core and is a mail to each of its readers, so it is not due more often."""
_LOOKED_AT: Final = 14
"""If all of so many due times are far enough from each other, all are: at most twelve of them are within an hour."""
_SOME_TIME_MS: Final = 1_704_067_200_000
"""2024-01-01: the distances of due times are the same at any time."""
_NEVER: Final = 2**62


class ReportTimes(NamedTuple):
    """When each report of a dashboard is due (ms), in the order of `reportConfigs`, as determined at `since_ms`.

    `written_ms` is when the schedules were written. `_NEVER` stands for one that cannot be used, as imported ones may
    be.
    """

    written_ms: int
    since_ms: int
    due_ms: list[int]

    @classmethod
    def decoded(cls, raw: bytes) -> ReportTimes:
        """Those of which `raw` are the stored bytes."""
        return cls(*decode(raw))

    def encoded(self) -> bytes:
        """The stored bytes."""
        return encode(list(self))

    @property
    def first_ms(self) -> int:
        """The first of the due times."""
        return min(self.due_ms)

    def fired(self, position: int, next_ms: int, now_ms: int) -> ReportTimes:
        """The times after one was due."""
        due_ms = list(self.due_ms)
        due_ms[position] = next_ms
        return ReportTimes(self.written_ms, now_ms, due_ms)

    def corrected(self, configs: list[Doc], now_ms: int) -> ReportTimes:
        """The times after the clock was set back, perhaps: then some may be earlier."""
        if now_ms >= self.since_ms:
            return self
        due_ms = [
            each if each == _NEVER else _schedule_of(config).corrected(each, self.since_ms, now_ms)
            for config, each in zip(configs, self.due_ms, strict=True)
        ]
        return self if due_ms == self.due_ms else ReportTimes(self.written_ms, now_ms, due_ms)


class ReportDue(DueTimes):
    """The due times of all dashboards with schedules, of what is on disk. A component of the system."""

    def __init__(self, away: Collection[bytes] = ()) -> None:
        super().__init__(away)
        self.times: dict[Place, ReportTimes] = {}
        """By the parent and the id of a dashboard."""
        self.on_first: Callable[[], None] = lambda: None
        """Called when a dashboard is the first one with schedules since the start."""

    def schedule(self, place: Place, times: ReportTimes | None) -> None:
        """Note the due times of a dashboard; None if it has none any more."""
        if times is None:
            self.times.pop(place, None)
            self.set(place, None)
            return
        if place[0] in self._away:
            return
        self.times[place] = times
        self.set(place, times.first_ms)
        self.on_first()

    def forget(self, application: bytes) -> int:
        """Forget the times of an application that is deleted, or has left."""
        self.times = {place: each for place, each in self.times.items() if place[0] != application}
        return super().forget(application)


def job_kind(holder: str) -> JobKind:
    """The kind of the jobs that make the reports of dashboards of an application, or of a user or organization."""
    return APPLICATION_REPORT if holder == "application" else USER_REPORT


def as_report(config: Report) -> SendReport:
    """What is asked of a report that is due."""
    fields: dict[str, Any] = {name: getattr(config, name) for name in Delivery.__struct_fields__}
    return SendReport(**fields)


def schedule(config: Report) -> Schedule:
    """When a report is due. Raises `Invalid`."""
    try:
        found = schedule_of({"cron": config.cron, "tz": config.timezone or ""})
    except Invalid as refusal:
        raise Invalid(refusal.message.replace("tz: ", "timezone: ", 1)) from None
    if found is None:
        raise Invalid(
            "cron: is empty; give five fields, minute hour day month weekday, such as '0 6 * * 1-5'."
        )
    return found


def check_schedules(configs: list[Report]) -> None:
    """Check what needs no actor: when reports are due, and how they look. Raises `Invalid`. Not for the event loop."""
    for position, config in enumerate(configs):
        try:
            report_options(as_report(config), _SOME_TIME_MS)
            _check_interval(config)
        except Invalid as refusal:
            raise Invalid(f"reportConfigs[{position}].{refusal.message}") from None


def _check_interval(config: Report) -> None:
    found = schedule(config)
    due_ms = [found.first(_SOME_TIME_MS)]
    while len(due_ms) < _LOOKED_AT:
        due_ms.append(found.first(due_ms[-1]))
    if min(later - earlier for earlier, later in pairwise(due_ms)) < INTERVAL_MIN_S * 1000:
        raise Invalid(
            f"cron: {config.cron!r} is due again in less than {INTERVAL_MIN_S // 60} minutes, which is the least time "
            "between two reports."
        )


def check_receivers(change: Change, configs: list[Doc]) -> None:
    """Check who gets the reports. Raises `Invalid`, or `Forbidden` for a token that may send none."""
    system = change.owner.system
    for position, config in enumerate(configs):
        field = f"reportConfigs[{position}]"
        if not ("toEmail" in config or "callbackUrl" in config):
            raise Invalid(f"{field}: goes nowhere; give toEmail or callbackUrl.")
        if change.is_import:
            continue  # a report that cannot be sent is left out when it is due
        for number, address in enumerate(config.get("toEmail", ())):
            check_address(address, f"{field}.toEmail[{number}]")
        if url := config.get("callbackUrl"):
            check_url(url, private=may_be_private(system, url), field=f"{field}.callbackUrl")
    if configs:
        _check_scopes(change.owner.ref.kind, change.by)


def _check_scopes(holder: str, by: Creator) -> None:
    """What sends a report now needs this scope, so what sends it later needs it as well."""
    operation = job_kind(holder).operation
    area: Area = "application" if holder == "application" else "organization"
    accepted = frozenset(scopes_of(operation, "write", area=area))
    if not all(accepted.intersection(each.scopes) for each in by.mandates):
        raise Forbidden(f"reportConfigs: a token that schedules reports needs the scope {operation}.")


def schedule_reports(change: Change) -> None:
    """Store when the reports are due from now on, and in whose name they are made."""
    new, configs = change.new, change.new["reportConfigs"]
    new.pop(SCHEDULER, None)
    if configs:
        by = change.by
        new[SCHEDULER] = [by.id, by.type, by.name, stored_mandates(by.mandates)]
    _store(change.owner, change.id, configs, change.now_ms, is_import=change.is_import)


def adopt_reports(owner: Actor, id: bytes, doc: Doc) -> None:
    """Store when the reports are due of a dashboard that another parent had. Who scheduled them stays the same.

    Schedules that nobody has saved since reports are sent on them stay without effect.
    """
    _store(owner, id, scheduled(doc), owner.system.clock.wall_ms(), is_import=True)


def scheduled(dashboard: Doc) -> list[Doc]:
    """The reports of a dashboard that are sent on schedules: none where nobody is named who has scheduled them."""
    configs: list[Doc] = dashboard["reportConfigs"] if SCHEDULER in dashboard else []
    return configs


def forget_reports(owner: Actor, id: bytes, _doc: Doc) -> None:
    """Nothing is due any more of a dashboard that goes."""
    _store(owner, id, [], 0, is_import=True)


def _store(owner: Actor, id: bytes, configs: list[Doc], now_ms: int, *, is_import: bool) -> None:
    place = (owner.ref.id, id)
    key = keys.report_times_key(*place)
    times = None
    if configs:
        due_ms = [_first(config, now_ms, is_import=is_import) for config in configs]
        times = ReportTimes(now_ms, now_ms, due_ms)
        owner.put(keys.META, key, times.encoded())
    elif owner.system.journal.get(keys.META, key) is not None:
        owner.delete(keys.META, key)
    else:
        return
    owner.after_commit(partial(owner.system.component(ReportDue).schedule, place, times))


def _first(config: Doc, now_ms: int, *, is_import: bool) -> int:
    try:
        if is_import:
            _check_interval(msgspec.convert(config, Report))
        return _schedule_of(config).first(now_ms)
    except Invalid:
        if is_import:
            return _NEVER
        raise


def _schedule_of(config: Doc) -> Schedule:
    return schedule(msgspec.convert(config, Report))


def scheduler_of(doc: Doc) -> Creator:
    """Who has scheduled the reports of a dashboard."""
    id, type, name, mandates = doc[SCHEDULER]
    return Creator(id, type, name, mandates_of(mandates))
