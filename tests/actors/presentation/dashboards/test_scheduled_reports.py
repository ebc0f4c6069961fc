"""Reports of dashboards on schedules: each due time queues one job, in the name of who wrote the schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.actors.engine.run_house import BY
from tests.actors.house import START_MS, House, running_again, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.mandate import Mandate
from trunkline.actors.core.records.messages import (
    AdoptRecords,
    CreateRecord,
    Creator,
    DeleteRecord,
    PatchRecord,
)
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, Forbidden, Invalid
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.actors.presentation.dashboards.messages import DashboardPatch, DashboardPost
from trunkline.actors.presentation.dashboards.report_schedule import SCHEDULER, ReportDue, ReportTimes
from trunkline.actors.presentation.dashboards.resource import DASHBOARDS
from trunkline.actors.presentation.dashboards.scheduled_reports import ScheduledReports
from trunkline.store import keys

DAY_MS = 86_400_000
DAILY = {"cron": "0 6 * * *", "toEmail": ["a@example.com"]}
HOUR_MS = 3_600_000
TO_SIX_MS = 18 * HOUR_MS
"""START_MS is 2024-05-01T12:00:00Z."""
NAME = DASHBOARDS.name


def application(house: House) -> Ref:
    return Ref("application", ROOT, house.application)


async def dashboard(house: House, *configs: Any, by: Creator = BY, **fields: Any) -> bytes:
    """A dashboard with these schedules."""
    body = msgspec.convert({"name": "d", "reportConfigs": list(configs), **fields}, DashboardPost)
    assert DASHBOARDS.prepare is not None
    body = await DASHBOARDS.prepare(body)
    made = await house.system.ask(application(house), CreateRecord(resource=NAME, body=body, by=by))
    id: bytes = made.value.id
    return id


async def patch(house: House, id: bytes, by: Creator = BY, **fields: Any) -> None:
    body = msgspec.convert(fields, DashboardPatch)
    message = PatchRecord(resource=NAME, record=id, body=body, by=by)
    await house.system.ask(application(house), message)


async def moved_to(house: House, offset_ms: int) -> None:
    """Set the clock, and wait until all that is due then is queued and done."""
    reports = house.system.component(ScheduledReports)
    house.clock.set_wall(START_MS + offset_ms)
    with trio.fail_after(PATIENCE_S):
        while True:
            reports.alarm.look()
            while not reports.alarm.is_waiting:
                await trio.lowlevel.checkpoint()
            done = [job["status"] not in ("queued", "inProgress") for job in jobs(house)]
            times = house.system.component(ReportDue).times.values()
            if all(done) and all(each.first_ms > START_MS + offset_ms for each in times):
                return
            # A second report of a dashboard is tried again later, as often as the first is not done.
            house.clock.set_wall(house.clock.wall_ms() + 1_000)


def jobs(house: House) -> list[Doc]:
    """The jobs of the application, in their order."""
    with house.system.store.snapshot() as snapshot:
        prefix = keys.record_prefix(JOB.name, house.application)
        found = [bytes(key[-12:]) for key in snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))]
        docs = [records.doc_of(snapshot, JOB, house.application, id) for id in found]
    return [doc for doc in docs if doc is not None]


def subjects(house: House) -> list[str]:
    return [job["input"]["subject"] for job in jobs(house)]


def times_left(house: House) -> int:
    prefix = keys.REPORT_TIMES_PREFIX
    with house.system.store.snapshot() as snapshot:
        return len(list(snapshot.keys(keys.META, prefix, keys.prefix_end(prefix))))


async def test_each_due_time_queues_one_report(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        berlin = {**DAILY, "timezone": "Europe/Berlin", "subject": "Berlin", "message": "m", "locale": "de"}
        id = await dashboard(house, {**DAILY, "subject": "UTC"}, berlin)
        await moved_to(house, TO_SIX_MS - 2 * HOUR_MS - 20_000)
        assert jobs(house) == []
        await moved_to(house, TO_SIX_MS - 2 * HOUR_MS)
        assert subjects(house) == ["Berlin"]
        await moved_to(house, TO_SIX_MS)
        assert subjects(house) == ["Berlin", "UTC"]
        await moved_to(house, TO_SIX_MS + DAY_MS)
        assert sorted(subjects(house)) == ["Berlin", "Berlin", "UTC", "UTC"]
        job = jobs(house)[0]
        assert (job["name"], job["resourceId"]) == ("applicationDashboard.sendReport", id.hex())
        assert (job["requestedById"], job["requestedByType"]) == (BY.id, BY.type)
        options = {"subject": "Berlin", "message": "m", "timezone": "Europe/Berlin", "locale": "de"}
        assert job["input"].items() >= options.items()
        assert [(each["by"], each["to"]) for each in job["tell"]] == [("email", "a@example.com")]


async def test_a_job_and_the_next_due_time_of_its_report_are_stored_together(tmp_path: Path) -> None:
    """So each due time has one job, whenever the server is killed."""
    async with running_house(tmp_path / "d") as house:
        id = await dashboard(house, DAILY)
        house.clock.set_wall(START_MS + TO_SIX_MS)
        house.system.component(ScheduledReports).alarm.look()
        with trio.fail_after(PATIENCE_S):
            while True:
                with house.system.store.snapshot() as snapshot:
                    raw = snapshot.get(keys.META, keys.report_times_key(house.application, id))
                    prefix = keys.record_prefix(JOB.name, house.application)
                    queued = len(list(snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix))))
                assert raw is not None
                due_ms = ReportTimes.decoded(bytes(raw)).first_ms
                assert due_ms == START_MS + TO_SIX_MS + queued * DAY_MS
                if queued:
                    return
                await trio.lowlevel.checkpoint()


async def test_what_was_due_while_the_server_was_down_is_queued_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await dashboard(house, DAILY)
    async with running_again(tmp_path / "d", house, TO_SIX_MS + 3 * DAY_MS) as again:
        await moved_to(again, TO_SIX_MS + 3 * DAY_MS + 1)
        assert len(jobs(again)) == 1
        await moved_to(again, TO_SIX_MS + 4 * DAY_MS)
        assert len(jobs(again)) == 2


async def test_a_changed_schedule_counts_at_once_and_an_empty_one_ends_it(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await dashboard(house, DAILY)
        await patch(house, id, reportConfigs=[{**DAILY, "cron": "0 23 * * *", "subject": "late"}])
        await patch(house, id, name="other")
        await moved_to(house, TO_SIX_MS)
        assert subjects(house) == ["late"]
        await patch(house, id, reportConfigs=[])
        await moved_to(house, TO_SIX_MS + DAY_MS)
        assert (len(jobs(house)), times_left(house)) == (1, 0)


async def test_nothing_is_due_of_what_is_deleted(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        id = await dashboard(house, DAILY)
        await dashboard(house, DAILY)
        await house.system.ask(application(house), DeleteRecord(resource=NAME, record=id))
        assert (times_left(house), len(house.system.component(ReportDue))) == (1, 1)
        await moved_to(house, TO_SIX_MS)
        assert len(jobs(house)) == 1


async def test_reports_follow_a_clock_that_was_set_back(tmp_path: Path) -> None:
    """Also one that was set back while the server was down."""
    async with running_house(tmp_path / "d") as house:
        house.clock.set_wall(START_MS + 400 * DAY_MS)
        await dashboard(house, DAILY)
        await moved_to(house, 0)
        await moved_to(house, TO_SIX_MS)
        assert len(jobs(house)) == 1
        house.clock.set_wall(START_MS + 400 * DAY_MS)
        await dashboard(house, DAILY)
    async with running_again(tmp_path / "d", house, 2 * DAY_MS) as again:
        await moved_to(again, 2 * DAY_MS)
        assert len(jobs(again)) == 2  # what the first was due for meanwhile
        await moved_to(again, 3 * DAY_MS)
        assert len(jobs(again)) == 4


async def test_a_report_that_cannot_be_queued_now_is_queued_later(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await dashboard(house, DAILY)
        await house.system.component(Jobs).stop()
        queue = house.system.component(JobQueue)
        waiting = house.system.limits.jobs_waiting_length_max
        queue._length += waiting  # as if so many jobs of others waited
        await look(house, TO_SIX_MS)
        assert jobs(house) == []
        queue._length -= waiting
        await look(house, TO_SIX_MS + 61_000)
        assert len(jobs(house)) == 1


async def look(house: House, offset_ms: int) -> None:
    """Set the clock, and let be queued what is due then."""
    reports = house.system.component(ScheduledReports)
    house.clock.set_wall(START_MS + offset_ms)
    reports.alarm.look()
    with trio.fail_after(PATIENCE_S):
        while not reports.alarm.is_waiting:
            await trio.lowlevel.checkpoint()


async def test_a_token_needs_the_scope_to_send_reports(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:

        def with_scopes(*scopes: str) -> Creator:
            return Creator("0" * 24, "apiToken", "t", (Mandate("t", scopes, user="0" * 24, token="1" * 24),))

        for scopes in (["applicationDashboard.*"], ["applicationDashboard.sendReport"], ["all.Application"]):
            await dashboard(house, DAILY, by=with_scopes(*scopes))
        id = await dashboard(house, by=with_scopes("applicationDashboard.post"))
        with pytest.raises(Forbidden, match=r"^reportConfigs: .* needs the scope applicationDashboard.send"):
            await patch(house, id, with_scopes("applicationDashboard.patch"), reportConfigs=[DAILY])
        assert times_left(house) == 3


async def test_an_imported_schedule_that_cannot_be_used_is_never_due(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        crons = [{**DAILY, "cron": "x"}, {**DAILY, "cron": "* * * * *"}, DAILY]
        body = msgspec.convert({"name": "d", "reportConfigs": crons}, DashboardPost)
        message = CreateRecord(resource=NAME, body=body, by=BY, import_id=b"\x01" * 12)
        await house.system.ask(application(house), message)
        await moved_to(house, TO_SIX_MS)
        assert len(jobs(house)) == 1


async def test_a_schedule_that_nobody_has_saved_since_stays_without_effect(tmp_path: Path) -> None:
    """Those that were stored before reports were sent on schedules do not say in whose name."""
    async with running_house(tmp_path / "d") as house:
        id = await dashboard(house, DAILY)
        with house.system.store.snapshot() as snapshot:
            doc = records.doc_of(snapshot, DASHBOARDS.kind, house.application, id)
        await house.system.ask(application(house), DeleteRecord(resource=NAME, record=id))
        assert doc is not None
        del doc[SCHEDULER]
        await house.system.ask(application(house), AdoptRecords(resource=NAME, records=[(id, doc)]))
        await moved_to(house, TO_SIX_MS)
        assert (jobs(house), times_left(house)) == ([], 0)
        await patch(house, id, reportConfigs=[DAILY])
        await moved_to(house, TO_SIX_MS + DAY_MS)
        assert len(jobs(house)) == 1


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"cron": "x"}, "reportConfigs[1].cron: 'x' cannot be used"),
        ({"cron": ""}, "reportConfigs[1].cron: is empty; give five fields"),
        ({"cron": "0 0 30 2 *"}, "reportConfigs[1].cron: '0 0 30 2 *' cannot be used"),
        ({"timezone": "Berlin"}, "reportConfigs[1].timezone: 'Berlin' is not a time zone"),
        ({"locale": "xx"}, "reportConfigs[1].locale: 'xx' is not a locale"),
        ({"cron": "* * * * * *"}, "reportConfigs[1].cron: '* * * * * *' is due again in less than 5 minutes"),
        ({"cron": "*/4 * * * *"}, "reportConfigs[1].cron: '*/4 * * * *' is due again in less than 5 minutes"),
        (
            {"cron": "0,58 * * * *"},
            "reportConfigs[1].cron: '0,58 * * * *' is due again in less than 5 minutes",
        ),
        (
            {"callbackUrl": "http://a:b@example.com"},
            "reportConfigs[1].callbackUrl: must not contain a user name",
        ),
    ],
)
async def test_what_cannot_be_sent_is_refused(tmp_path: Path, config: Any, sentence: str) -> None:
    async with running_house(tmp_path / "d") as house:
        with pytest.raises(DomainError) as refused:
            await dashboard(house, DAILY, {**DAILY, **config})
        assert isinstance(refused.value, Invalid)
        assert refused.value.message.startswith(sentence)
        assert times_left(house) == 0
        await dashboard(house, {**DAILY, "cron": "*/5 * * * *"}, {**DAILY, "cron": "@hourly"})


async def test_a_deleted_application_leaves_no_schedule(tmp_path: Path) -> None:
    async with running_house(tmp_path / "d") as house:
        await dashboard(house, DAILY)
        await house.system.ask(application(house), DeleteApplication())
        while await sweep(house.system):
            pass
        assert times_left(house) == 0
        await look(house, TO_SIX_MS)
        assert len(house.system.component(ReportDue)) == 0
