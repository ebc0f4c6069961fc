"""Changes of very many events: a job does them part by part, each once, whatever happens meanwhile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.actors.event_house import BY, Events
from tests.actors.house import House, running_house
from tests.patience import PATIENCE_S
from trunkline.actors.catalogue import KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.data.events.actor import Progress
from trunkline.actors.data.events.jobs import PART_EVENTS
from trunkline.actors.data.events.messages import (
    BeginEventJob,
    DeleteSomeEvents,
    EventChoice,
    EventPatch,
    PatchSomeEvents,
)
from trunkline.actors.maintenance import sweep as purge
from trunkline.actors.platform.applications.messages import DeleteApplication
from trunkline.actors.platform.jobs.messages import GetJobLog, QueueJob
from trunkline.limits.table import Limits
from trunkline.store import keys
from trunkline.store.backup import verify

LIMITS = Limits.off().override({"job_progress_s": 0.001, "job_pause_s": 0.001})
PATCH: dict[str, Any] = {"choice": {"state": "new"}, "body": {"state": "resolved", "comment": "by a job"}}


async def queue(house: House, operation: str, input: dict[str, Any]) -> bytes:
    message = QueueJob(operation=operation, resource=house.application, input=input, by=BY)
    answer = await house.system.ask(Ref("application", ROOT, house.application), message)
    id: bytes = answer.value
    return id


async def log_of(house: House, job: bytes) -> Any:
    return await house.read(GetJobLog(application=house.application, job=job))


async def ended(house: House, job: bytes) -> Any:
    with trio.fail_after(PATIENCE_S):
        while "runCompletedAt" not in (log := await log_of(house, job)):
            await trio.lowlevel.checkpoint()
    return log


async def until_changed(house: House, job: bytes, events: int) -> None:
    """Wait until the job has changed so many events at least."""
    with trio.fail_after(PATIENCE_S):
        while (await log_of(house, job))["progress"]["completed"] < events:
            await trio.lowlevel.checkpoint()


async def every_event(events: Events) -> list[dict[str, Any]]:
    return [item for page in range(2) for item in (await events.page(perPage=1000, page=page))["items"]]


def check(house: House) -> None:
    assert verify(house.system.store, partial(records.index_keys, KINDS)).problems == []


async def test_a_job_changes_all_that_match_and_were_there(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        events = Events(house)
        many = 2 * PART_EVENTS + 7
        for number in range(many):
            await events.create(subject=f"n{number}")
        other = await events.create(subject="other", state="acknowledged")
        job = await queue(house, "events.patch", PATCH)
        await until_changed(house, job, 1)
        late = await events.create(subject="late")
        log = await ended(house, job)
        assert (log["status"], log["output"]) == ("completed", {"changed": many})
        assert log["progress"] == {"completed": many, "total": many, "status": "completed"}
        for event in await every_event(events):
            if event["id"] in (other.hex(), late.hex()):
                assert event["updates"] == []
            else:
                (update,) = event["updates"]
                assert (event["state"], update["comment"]) == ("resolved", "by a job")
        removed = await ended(house, await queue(house, "events.delete", {"query": {"state": "resolved"}}))
        assert removed["output"] == {"removed": many}
        assert await events.subjects(sortField="subject") == ["other", "late"]
        check(house)


async def test_a_part_that_is_sent_again_is_done_once(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        events = Events(house)
        ids = [await events.create(subject=f"n{number}") for number in range(5)]
        job, other = bytes(11) + b"1", bytes(11) + b"2"
        begin = BeginEventJob(job=job, end=ids[3], ended=[])
        assert await events.ask(begin) == Progress(0, b"", ids[3])

        def part(ids: list[bytes]) -> PatchSomeEvents:
            body = EventPatch(level="critical", comment="by a job")
            return PatchSomeEvents(job=job, ids=ids, choice=EventChoice(), body=body, by=BY)

        assert await events.ask(part(ids[:3])) == Progress(3, ids[2], ids[3])
        await events.patch(ids[2], level="info", comment="meanwhile")
        assert await events.ask(part(ids[:3])) == Progress(3, ids[2], ids[3])
        assert await events.ask(begin) == Progress(3, ids[2], ids[3])
        # The last one is behind the end of the job.
        assert await events.ask(part(ids)) == Progress(4, ids[3], ids[3])
        comments = [[update["comment"] for update in (await events.get(id))["updates"]] for id in ids]
        assert comments == [["by a job"]] * 2 + [["by a job", "meanwhile"], ["by a job"], []]
        assert (await events.get(ids[2]))["level"] == "info"

        await events.ask(BeginEventJob(job=other, end=ids[4], ended=[job]))
        delete = DeleteSomeEvents(job=other, ids=ids[:3], choice=EventChoice(query={"level": "critical"}))
        for _ in range(2):
            assert await events.ask(delete) == Progress(2, ids[2], ids[4])
        assert await events.ask(begin) == Progress(0, b"", ids[3])


async def test_a_part_ends_where_a_turn_has_written_enough(tmp_path: Path) -> None:
    limits = LIMITS.override({"changed_events_bytes_max": 25_000})
    async with running_house(tmp_path / "data", limits=limits) as house:
        events = Events(house)
        ids = [await events.create(subject=f"n{number}") for number in range(7)]
        body = EventPatch(comment="x" * 10_000)
        await events.ask(BeginEventJob(job=bytes(12), end=ids[6], ended=[]))
        part = PatchSomeEvents(job=bytes(12), ids=ids, choice=EventChoice(), body=body, by=BY)
        assert await events.ask(part) == Progress(3, ids[2], ids[6])
        input: dict[str, Any] = {"choice": {}, "body": {"comment": "y" * 10_000}}
        log = await ended(house, await queue(house, "events.patch", input))
        assert log["output"] == {"changed": 7}
        assert sorted(len(event["updates"]) for event in await every_event(events)) == [1, 1, 1, 1, 2, 2, 2]


async def test_a_job_leaves_nothing_behind(tmp_path: Path) -> None:
    """What a job noted goes with the next job, and with the application."""
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        events = Events(house)
        await events.create()

        def notes() -> int:
            with house.system.store.snapshot() as snapshot:
                prefix = keys.EVENT_JOB_PREFIX
                return snapshot.count(keys.META, prefix, keys.prefix_end(prefix))

        for _ in range(3):
            await ended(house, await queue(house, "events.patch", {"choice": {}, "body": {"comment": "x"}}))
            assert notes() == 1
        await house.system.ask(Ref("application", ROOT, house.application), DeleteApplication())
        while await purge.sweep(house.system):
            pass
        assert notes() == 0


@pytest.mark.slow
async def test_a_job_that_a_restart_breaks_off_updates_each_event_once(tmp_path: Path) -> None:
    many = 4 * PART_EVENTS
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        events = Events(house)
        for number in range(many):
            await events.create(subject=f"n{number}")
        house.clock.pass_s(1)
        job = await queue(house, "events.patch", PATCH)
        await until_changed(house, job, PART_EVENTS)
        application = house.application
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        house.application = application
        events = Events(house)
        log = await ended(house, job)
        assert (log["status"], log["output"]) == ("completed", {"changed": many})
        found = await every_event(events)
        assert len(found) == many
        assert all(len(event["updates"]) == 1 and event["state"] == "resolved" for event in found)
        check(house)


@pytest.mark.parametrize("query", [{"severity": "info"}, {"$and": {}}])
async def test_a_job_with_a_query_that_is_none_is_refused_by_its_log(
    tmp_path: Path, query: dict[str, Any]
) -> None:
    async with running_house(tmp_path / "data", limits=LIMITS) as house:
        log = await ended(house, await queue(house, "events.delete", {"query": query}))
        assert log["status"] == "errored"
        assert log["error"]["message"].startswith("query.")
