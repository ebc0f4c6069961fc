"""The health of an application in one word, and the reasons for it, the worst first.

Owns the rules: which facts are reasons, and of which level. The facts are the count of the fleet (`fleet.py`), what is
wrong beside the devices (`troubles.py`), and the traffic of the last ten minutes. A reason of the level info is shown
and does not change the verdict. Short reads: nothing here depends on the number of devices.

- Silent devices are critical where half of those that were ever seen are silent, and a warning from one percent on.
- New events of the level critical are critical, those that somebody has acknowledged and new errors a warning.
- Failed runs in the last hour are a warning, and critical where a workflow failed at least five times and in at least
  half of its runs.
- Integrations without connection are a warning, and critical where none has one.
- Jobs of the last day that failed, such as exports and archives, are a warning.
- Refusals in the last ten minutes are a warning, and critical where ten or more were refused and less was stored.

Without any reason, an application of which no device was ever seen is neither well nor ill: `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.state.traffic import ApplicationTraffic, Traffic
from trunkline.actors.platform.applications.reads import readable_applications
from trunkline.actors.presentation.overview.fleet import Fleet, Fleets, newest_events
from trunkline.actors.presentation.overview.health_messages import (
    ChooseApplications,
    Chosen,
    Culprit,
    GetHealth,
    Health,
    Level,
    Reason,
    Verdict,
)
from trunkline.actors.presentation.overview.reads import show_fleet
from trunkline.actors.presentation.overview.troubles import Link, links

if TYPE_CHECKING:
    from trunkline.actors.core.records.reading import Reading
    from trunkline.store.snapshot import Snapshot

_ITEMS_MAX: Final = 5
_RANKS: Final[dict[Level, int]] = {"critical": 0, "warning": 1, "info": 2}
_SILENT_CRITICAL: Final = 0.5
_SILENT_WARNING: Final = 0.01
_FAILED_CRITICAL: Final = 5
_REFUSED_CRITICAL: Final = 10


def choose_applications(reading: Reading, message: ChooseApplications) -> Chosen:
    """The ids and records of a page of the applications that a user can read, and how many there are."""
    query = message.query
    found, total = readable_applications(reading, message.user, None, query, query.filter_field)
    return [(each.id, each.doc) for each in found], total


def get_health(reading: Reading, message: GetHealth) -> Health:
    """The health of an application."""
    system, application, now_ms = reading.system, message.application, message.now_ms
    assert system is not None
    fleet = system.component(Fleets).of(application)
    traffic = system.component(Traffic).of(application)
    found = records.find(reading.snapshot, APPLICATION, ROOT, application)
    reasons = [
        *_of_devices(reading.snapshot, application, fleet),
        *_of_events(reading.snapshot, application, fleet),
        *_of_flows(fleet),
        *_of_links(links(reading, application)),
        *_of_jobs(fleet),
        *_of_traffic(traffic, now_ms),
    ]
    reasons.sort(key=lambda each: _RANKS[each.level])
    verdict, sentence = _judged(fleet, reasons)
    return Health(
        application_id=application.hex(),
        name="" if found is None else found.doc["name"],
        verdict=verdict,
        message=sentence,
        reasons=reasons,
        devices=show_fleet(fleet, None, now_ms),
        time=iso(now_ms),
    )


def _judged(fleet: Fleet, reasons: list[Reason]) -> tuple[Verdict, str]:
    """The verdict and its sentence: that of the worst reason, where there is one."""
    for reason in reasons:
        if reason.level != "info":
            return reason.level, reason.message
    seen = fleet.connected + len(fleet.seen_ms)
    if not seen and not len(fleet.never_seen):
        return "unknown", "There are no devices yet."
    if not seen:
        return "unknown", "No device has reported yet."
    silent = len(fleet.silent(None))
    return "ok", f"{seen - silent} of {_counted(seen, 'device')} {_are(seen - silent)} reporting."


def _of_devices(snapshot: Snapshot, application: bytes, fleet: Fleet) -> Iterator[Reason]:
    seen = fleet.connected + len(fleet.seen_ms)
    places = fleet.silent(None)
    silent = len(places)
    if silent:
        share = silent / seen
        level: Level = "info"
        if share >= _SILENT_WARNING:
            level = "critical" if share >= _SILENT_CRITICAL else "warning"
        yield Reason(
            kind="silentDevices",
            level=level,
            message=f"{silent} of {seen} {_plural(seen, 'device')} {_are(silent)} silent.",
            number=silent,
            of=seen,
            operation="application.silentDevices",
            items=[
                _device(snapshot, application, fleet.ids[at].tobytes()) for at in places[::-1][:_ITEMS_MAX]
            ],
        )
    never = len(fleet.never_seen)
    if never:
        yield Reason(
            kind="neverSeenDevices",
            level="info",
            message=f"{_counted(never, 'device')} {'has' if never == 1 else 'have'} never reported.",
            number=never,
            of=seen + never,
            operation="application.silentDevices",
            items=[
                _device(snapshot, application, each.tobytes()) for each in fleet.never_seen[::-1][:_ITEMS_MAX]
            ],
        )


def _device(snapshot: Snapshot, application: bytes, id: bytes) -> Culprit:
    found = records.find(snapshot, DEVICE, application, id)
    return Culprit(id=id.hex(), name=None if found is None else found.doc["name"])


def _of_events(snapshot: Snapshot, application: bytes, fleet: Fleet) -> Iterator[Reason]:
    for state, of_level, level in (
        ("new", "critical", "critical"),
        ("acknowledged", "critical", "warning"),
        ("new", "error", "warning"),
    ):
        number, words = fleet.events[state][of_level], f"{state} {of_level} event"
        if number:
            newest = newest_events(snapshot, application, state, of_level, _ITEMS_MAX)
            yield Reason(
                kind="openEvents",
                level=level,  # type: ignore[arg-type]
                message=f"{_counted(number, words)} {_are(number)} open.",
                number=number,
                operation="events.get",
                items=[Culprit(id=id.hex(), name=subject) for id, subject in newest],
            )


def _of_flows(fleet: Fleet) -> Iterator[Reason]:
    failing = fleet.failing
    if not failing:
        return
    failed, runs = sum(each.failed for each in failing), sum(each.runs for each in failing)
    is_critical = any(each.failed >= max(_FAILED_CRITICAL, each.runs / 2) for each in failing)
    if len(failing) == 1:
        what = f"{failed} of {_counted(runs, 'run')} of {failing[0].name}"
    else:
        what = f"{_counted(failed, 'run')} of {len(failing)} workflows"
    yield Reason(
        kind="failedRuns",
        level="critical" if is_critical else "warning",
        message=f"{what} failed in the last hour.",
        number=failed,
        of=runs,
        operation="flow.errors",
        items=[
            Culprit(id=each.id.hex(), name=each.name, number=each.failed) for each in failing[:_ITEMS_MAX]
        ],
    )


def _of_links(found: list[Link]) -> Iterator[Reason]:
    down = [each for each in found if not each.is_up and each.error is not None]
    if not down:
        return
    why = f": {down[0].error}" if len(down) == 1 else "."
    yield Reason(
        kind="integrationsDown",
        level="critical" if len(down) == len(found) else "warning",
        message=f"{len(down)} of {_counted(len(found), 'integration')} {_are(len(down))} not connected{why}",
        number=len(down),
        of=len(found),
        operation="integrations.get",
        items=[Culprit(id=each.id.hex(), name=each.name) for each in down[:_ITEMS_MAX]],
    )


def _of_jobs(fleet: Fleet) -> Iterator[Reason]:
    failed = fleet.failed_jobs
    if failed:
        yield Reason(
            kind="failedJobs",
            level="warning",
            message=f"{_counted(len(failed), 'job')} failed in the last day, the last one {failed[0].name}.",
            number=len(failed),
            operation="applicationJobLogs.get",
            items=[Culprit(id=each.id.hex(), name=each.name) for each in failed[:_ITEMS_MAX]],
        )


def _of_traffic(traffic: ApplicationTraffic, now_ms: int) -> Iterator[Reason]:
    history = traffic.history(now_ms)
    refused = sum(history.refused)
    if not refused:
        return
    stored = sum(history.states) + sum(history.commands)
    last = traffic.refusals[-1].reason if traffic.refusals else ""
    yield Reason(
        kind="refusals",
        level="critical" if refused >= _REFUSED_CRITICAL and refused > stored else "warning",
        message=f"{_counted(refused, 'message')} {'was' if refused == 1 else 'were'} refused in the last ten minutes"
        f"{f', the last one because of {last}' if last else ''}.",
        number=refused,
        of=refused + stored,
        operation="application.overview",
    )


def verdicts_of(found: Iterable[Health]) -> dict[str, int]:
    """How many applications have each verdict."""
    counts = dict.fromkeys(("critical", "warning", "ok", "unknown"), 0)
    for each in found:
        counts[each.verdict] += 1
    return counts


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _counted(number: int, noun: str) -> str:
    return f"{number} {_plural(number, noun)}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
