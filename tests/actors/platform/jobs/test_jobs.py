"""Jobs: what was queued is done, once, whatever happens meanwhile; and nobody queues more than is allowed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
import trio
import trio.testing

from tests.actors.house import ManualClock
from tests.actors.job_desk import BY, Held, desk, nothing
from tests.backups import back_up
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Invalid, NotFound, Overloaded, TooManyRequests
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance import sweep as purge
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.jobs.job import Job, parse_job_id, short_job_id
from trunkline.actors.platform.jobs.messages import EndJob, QueueJob
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.runner import Jobs
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.backup import verify


async def test_a_job_is_done_and_its_log_says_what_came_of_it(tmp_path: Path) -> None:
    async def run(job: Job) -> Doc:
        job.total = 3
        job.completed = await job.read(lambda _snapshot: 3)
        return {"made": job.input["wanted"]}

    async with desk(tmp_path / "data", run) as at:
        application = await at.application()
        id = await at.queue(application, input={"wanted": 7})
        log = await at.ended(application, id)
        assert log["status"] == "completed"
        assert log["output"] == {"made": 7}
        assert log["input"] == {"wanted": 7}
        assert log["progress"] == {"completed": 3, "total": 3, "status": "completed"}
        assert (log["requestedById"], log["requestedByType"]) == (BY.id, "user")
        assert log["id"] == log["jobId"] == id.hex()
        assert log["runQueuedAt"] <= log["runStartedAt"] <= log["runCompletedAt"]
        assert at.system.component(Jobs).queue.ended[log["name"], "completed"] == 1
        assert verify(at.system.store, partial(records.index_keys, KINDS)).problems == []


async def test_the_log_follows_a_running_job(tmp_path: Path) -> None:
    held = Held()
    async with desk(tmp_path / "data", held) as at:
        application = await at.application()
        id = await at.queue(application)
        await held.began.wait()
        assert (await at.log(application, id))["status"] == "inProgress"
        held.begun[0].completed, held.begun[0].total = 4, 9

        async def shown() -> bool:
            progress = (await at.log(application, id))["progress"]
            return bool(progress == {"completed": 4, "total": 9, "status": "inProgress"})

        await at.until(shown)
        held.go.set()
        await at.ended(application, id)


async def test_a_refusal_ends_a_job_with_its_sentence(tmp_path: Path) -> None:
    async def run(_job: Job) -> None:
        raise Invalid("query: the column was removed meanwhile.")

    async with desk(tmp_path / "data", run) as at:
        application = await at.application()
        log = await at.ended(application, await at.queue(application))
        assert log["status"] == "errored"
        assert log["error"] == {"name": "Validation", "message": "query: the column was removed meanwhile."}


async def test_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    attempts: list[int] = []

    async def run(job: Job) -> Doc:
        attempts.append(job.attempt)
        if job.attempt < 3:
            raise Overloaded("The server has no time.")
        return {"attempt": job.attempt}

    async with desk(tmp_path / "data", run) as at:
        application = await at.application()
        log = await at.ended(application, await at.queue(application))
        assert (log["status"], log["output"]) == ("completed", {"attempt": 3})
        assert attempts == [1, 2, 3]


async def test_a_job_that_keeps_failing_is_given_up_with_a_sentence(tmp_path: Path) -> None:
    async def run(_job: Job) -> None:
        raise RuntimeError("a fault")

    async with desk(tmp_path / "data", run) as at:
        application = await at.application()
        with structlog.testing.capture_logs() as logged:
            log = await at.ended(application, await at.queue(application))
        assert log["status"] == "failed"
        assert log["error"]["name"] == "Internal"
        assert "a fault" not in str(log)
        assert [entry["event"] for entry in logged].count("job failed") == Limits().job_attempts_max


async def test_a_check_refuses_before_anything_is_queued(tmp_path: Path) -> None:
    def check(_snapshot: Any, _application: bytes, message: QueueJob) -> None:
        raise Invalid(f"{message.input['query']}: is no query.")

    async with desk(tmp_path / "data", nothing, check=check) as at:
        application = await at.application()
        with pytest.raises(Invalid):
            await at.queue(application, input={"query": 1})
        assert await at.logs(application) == []


async def test_a_job_goes_on_after_a_death_of_the_server(tmp_path: Path) -> None:
    """What a kill leaves is what was committed: a copy of the store while the job runs is just that."""
    held = Held()

    async def run(job: Job) -> Doc:
        if not job.note:
            job.completed = 10
            await job.save({"next": 10})
            await held(job)
        return {"went on at": job.note["next"], "attempt": job.attempt, "completed": job.completed}

    async with desk(tmp_path / "data", run, {"jobs_running_max": 1}) as at:
        application = await at.application()
        first, second = await at.queue(application), await at.queue(application)
        await held.began.wait()
        await trio.to_thread.run_sync(back_up, at.system.store.directory.path, tmp_path / "copy")
    async with desk(tmp_path / "copy", run, {"jobs_running_max": 1}) as at:
        log = await at.ended(application, first)
        assert log["output"] == {"went on at": 10, "attempt": 2, "completed": 10}
        held.go.set()
        assert (await at.ended(application, second))["status"] == "completed"


async def test_a_job_that_never_comes_to_its_end_is_given_up(tmp_path: Path) -> None:
    """A job that kills the server is begun so often and no more."""
    path = tmp_path / "data"
    for number in range(3):
        held = Held()
        async with desk(path, held, {"job_attempts_max": 2}) as at:
            if number == 0:
                application = await at.application()
                id = await at.queue(application)
            if number < 2:
                await held.began.wait()
                await trio.to_thread.run_sync(
                    back_up, at.system.store.directory.path, tmp_path / f"copy{number}"
                )
            else:
                log = await at.ended(application, id)
                assert log["status"] == "failed"
                assert "2 times" in log["error"]["message"]
                assert held.begun == []
        path = tmp_path / f"copy{number}"


async def test_a_stop_in_good_order_is_no_attempt(tmp_path: Path) -> None:
    for number in range(4):
        held = Held()
        async with desk(tmp_path / "data", held, {"job_attempts_max": 2}) as at:
            if number == 0:
                application = await at.application()
                id = await at.queue(application)
            await held.began.wait()
            if number == 3:
                held.go.set()
                assert (await at.ended(application, id))["output"] == {"attempt": 1}


async def test_a_job_ends_once(tmp_path: Path) -> None:
    async with desk(tmp_path / "data", nothing) as at:
        application = await at.application()
        id = await at.queue(application)
        before = await at.ended(application, id)
        ref = Ref("application", ROOT, application)
        await at.system.ask(ref, EndJob(id=id, status="failed", completed=0, total=None))
        assert await at.log(application, id) == before


async def test_a_gate_lets_one_in_for_each_resource_also_after_a_restart(tmp_path: Path) -> None:
    gate: dict[str, Any] = {"gate": "data_table_export_concurrent_calls_max"}
    held = Held()
    one, other = b"1" * 12, b"2" * 12
    async with desk(tmp_path / "data", held, **gate) as at:
        application = await at.application()
        id = await at.queue(application, resource=one)
        await at.queue(application, resource=other)
        with pytest.raises(TooManyRequests, match="this data table is queued or runs"):
            await at.queue(application, resource=one)
        assert len(await at.logs(application)) == 2
    held = Held()
    async with desk(tmp_path / "data", held, **gate) as at:
        with pytest.raises(TooManyRequests):
            await at.queue(application, resource=one)
        held.go.set()
        await at.ended(application, id)
        await at.ended(application, await at.queue(application, resource=one))


async def test_the_bounds_on_open_jobs(tmp_path: Path) -> None:
    held = Held()
    limits = {"application_jobs_max": 2, "jobs_waiting_length_max": 2, "jobs_running_max": 1}
    async with desk(tmp_path / "data", held, limits) as at:
        first = await at.application()
        for _ in range(2):
            await at.queue(first)
        with pytest.raises(TooManyRequests, match="2 open jobs"):
            await at.queue(first)
        await held.began.wait()
        await at.queue(await at.application())
        with pytest.raises(Overloaded, match="2 jobs wait"):
            await at.queue(await at.application())
        held.go.set()
        for log in await at.logs(first):
            await at.ended(first, bytes.fromhex(log["id"]))
        await at.queue(first)


async def test_as_many_jobs_run_at_once_as_may_and_no_more(tmp_path: Path) -> None:
    held = Held()
    async with desk(tmp_path / "data", held, {"jobs_running_max": 3}) as at:
        first, second = await at.application(), await at.application()
        await trio.testing.wait_all_tasks_blocked()  # all of them wait for work
        ids = [(each, await at.queue(each)) for each in (first, first, second, first, second)]

        async def three_run() -> bool:
            return len(held.begun) == 3

        await at.until(three_run)
        await trio.testing.wait_all_tasks_blocked()
        assert (len(held.begun), len(at.system.component(Jobs).queue)) == (3, 2)
        held.go.set()
        for application, id in ids:
            await at.ended(application, id)


async def test_one_owner_with_many_applications_leaves_a_place_for_another(tmp_path: Path) -> None:
    held = Held()
    limits = {"jobs_running_max": 3, "jobs_waiting_length_max": 6}
    async with desk(tmp_path / "data", held, limits) as at:
        queue = at.system.component(JobQueue)
        greedy = [await at.application(owner=bytes.fromhex("a1" * 12)) for _ in range(8)]
        quiet = await at.application(owner=bytes.fromhex("b1" * 12))

        async def begun(number: int) -> None:
            async def so_many() -> bool:
                return len(held.begun) == number

            await at.until(so_many)

        for each in greedy[:2]:
            await at.queue(each)
        await begun(2)
        for each in greedy[2:6]:
            await at.queue(each)
        for each in greedy[6:]:
            with pytest.raises(Overloaded, match="4 of them of this owner"):
                await at.queue(each)
        assert (len(held.begun), len(queue)) == (2, 4), "half of the room stays free"
        await at.queue(quiet)
        await begun(3)
        assert [job.application for job in held.begun] == [*greedy[:2], quiet]
        held.go.set()


async def test_applications_take_turns(tmp_path: Path) -> None:
    held = Held()
    async with desk(tmp_path / "data", held, {"jobs_running_max": 1}) as at:
        first, second = await at.application(), await at.application()
        for _ in range(4):
            last = await at.queue(first)
        await at.queue(second)
        held.go.set()
        await at.ended(first, last)
        assert [job.application for job in held.begun] == [first, first, second, first, first]


async def test_a_job_ends_with_its_application_and_leaves_nothing(tmp_path: Path) -> None:
    held = Held()
    async with desk(tmp_path / "data", held) as at:
        application = await at.application()
        id = await at.queue(application)
        await held.began.wait()
        await at.system.ask(Ref("application", ROOT, application), DeleteApplication())

        async def stopped() -> bool:
            return not at.system.component(Jobs).running

        await at.until(stopped)
        while await purge.sweep(at.system):
            pass
        with pytest.raises(NotFound):
            await at.log(application, id)
        with at.system.store.snapshot() as snapshot:
            assert list(snapshot.keys(keys.RECORDS, b"", None)) == []
            assert snapshot.get(keys.META, keys.jobs_key(application)) is None


async def test_old_logs_are_forgotten_by_number_and_by_age(tmp_path: Path) -> None:
    async with desk(tmp_path / "data", nothing, {"job_logs_max": 3, "job_log_days": 2}) as at:
        application = await at.application()
        ids = []
        for _ in range(5):
            ids.append(await at.queue(application))
            await at.ended(application, ids[-1])
        await at.system.component(Jobs).delete_old()
        assert [log["id"] for log in await at.logs(application)] == [id.hex() for id in ids[2:]]
        clock = at.system.clock
        assert isinstance(clock, ManualClock)
        clock.pass_s(3 * 86_400)
        young = await at.queue(application)
        await at.ended(application, young)
        await at.system.component(Jobs).delete_old()
        assert [log["id"] for log in await at.logs(application)] == [young.hex()]


async def test_open_jobs_are_never_forgotten(tmp_path: Path) -> None:
    held = Held()
    async with desk(tmp_path / "data", held, {"job_logs_max": 1}) as at:
        application = await at.application()
        ids = [await at.queue(application) for _ in range(3)]
        await at.system.component(Jobs).delete_old()
        assert len(await at.logs(application)) == 3
        held.go.set()
        for id in ids:
            await at.ended(application, id)


async def test_the_log_can_be_searched_and_sorted(tmp_path: Path) -> None:
    async def run(job: Job) -> None:
        if job.input["number"] % 2:
            raise Invalid("odd numbers are refused here.")

    async with desk(tmp_path / "data", run) as at:
        application = await at.application()
        for number in range(4):
            await at.ended(application, await at.queue(application, input={"number": number}))
        refused = await at.logs(application, query={"status": "errored"})
        assert [log["input"]["number"] for log in refused] == [1, 3]
        newest = await at.logs(application, sort_direction="desc", per_page=1)
        assert [log["input"]["number"] for log in newest] == [3]
        by_status = await at.logs(application, sort_field="status")
        assert [log["status"] for log in by_status] == ["completed"] * 2 + ["errored"] * 2


def test_both_forms_of_a_job_id_are_read(tmp_path: Path) -> None:
    id = bytes(range(244, 256))
    assert len(short_job_id(id)) <= 21
    assert parse_job_id(short_job_id(id)) == parse_job_id(id.hex()) == id
    with pytest.raises(Invalid, match="jobId: 'zz' is not the id of a job; give the jobId or the id"):
        parse_job_id("zz")
