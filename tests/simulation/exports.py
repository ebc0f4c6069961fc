"""Exports of a table: jobs that are queued, go on after a power cut, and end with a file.

A job that was acknowledged ends. Its file is whole, and holds rows as they may have been at some time between the call
and the end of the job. While one is queued or runs, and only then, another one of the table is refused.
"""

from __future__ import annotations

import base64
import csv
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

from tests.simulation.model import Broken, Window
from tests.simulation.part import Part
from tests.simulation.records import Rows
from tests.simulation.site import Site, nothing
from tests.simulation.world import World
from tests.simulation.written import until

OPEN_MAX: Final = 2
ENDED: Final = ("completed", "errored", "failed")
NAME: Final = "dataTableRows.export"


class Export:
    """One that was asked for: its job, if that was told, and what the rows may have been since."""

    def __init__(self, window: Window, failures: int) -> None:
        self.window = window
        self.failures = failures
        """The commits that had failed before."""
        self.job: str | None = None
        self.is_alone = True
        """No other one was under way, for the client, while this was asked for."""


class Exports:
    """Those that have not ended, and the jobs that have."""

    def __init__(self) -> None:
        self.open: list[Export] = []
        self.ended: set[str] = set()


async def export(world: World, chance: Random) -> None:
    exports, rows = world.of(Exports), world.of(Rows)
    if not rows.path or len(exports.open) >= OPEN_MAX:
        return
    asked = Export(Window(rows.book), world.failed_commits)
    for other in exports.open:
        asked.is_alone = other.is_alone = False
    rows.book.watch(asked.window)
    exports.open.append(asked)
    answer = await world.call("POST", f"{rows.path}/export", {}, chance=chance)
    if answer is None:
        return  # a look at the log tells
    if answer.status == 202:
        asked.job = base64.urlsafe_b64decode(answer.body["jobId"]).hex()
        return
    _end(world, asked)
    if answer.status == 429 and asked.is_alone:
        raise Broken(f"{rows.path}/export is 429, and no other one is under way")


async def look(world: World) -> None:
    """Wait until all have ended, and read their files."""
    exports = world.of(Exports)
    if not exports.open:
        return

    async def missing() -> str:
        answer = await world.call("GET", f"{world.of(Site).path}/jobLogs?perPage=1000")
        assert answer is not None
        jobs = {each["jobId"]: each for each in answer.body["items"] if each["name"] == NAME}
        known = {each.job for each in exports.open}
        new = [id for id in sorted(jobs) if id not in known and id not in exports.ended]
        for each in list(exports.open):
            if each.job is None and new:
                each.job = new.pop(0)
            if each.job is None:
                _end(world, each)  # it was never queued
            elif each.job not in jobs:
                raise Broken(f"the export {each.job} is not in the log of jobs")
            elif jobs[each.job]["status"] in ENDED:
                await _read(world, each, jobs[each.job])
        return ", ".join(str(each.job) for each in exports.open)

    await until(world, missing, "exports")


async def _read(world: World, asked: Export, log: dict[str, Any]) -> None:
    """Hold the file of a job against the model."""
    assert asked.job is not None
    world.of(Exports).ended.add(asked.job)
    _end(world, asked)
    if log["status"] != "completed":
        if world.failed_commits == asked.failures and world.quota is None:
            raise Broken(f"the export {asked.job} is {log['status']} without a reason: {log}")
        return
    answer = await world.call("GET", f"{world.of(Site).path}/jobLogs/{asked.job}")
    assert answer is not None
    url = urlsplit(answer.body["output"]["file"]["url"])
    answer = await world.call("GET", f"{url.path}?{url.query}", token="")
    assert answer is not None
    if answer.status != 200:
        raise Broken(f"the file of the export {asked.job} is {answer.status}: {answer.body}")
    pieces = bytearray(answer.raw)
    if answer.stream is not None:
        while (piece := await answer.stream.next()) is not None:
            pieces += piece
        answer.stream.close()
    found = list(csv.DictReader(pieces.decode().splitlines()))
    if len(found) != log["output"]["rows"]:
        raise Broken(
            f"the export {asked.job} says that it has {log['output']['rows']} rows, its file {len(found)}"
        )
    asked.window.check({row[Rows.mark]: row[Rows.value] for row in found})
    world.reached["an export was read"] += 1


def _end(world: World, asked: Export) -> None:
    world.of(Exports).open.remove(asked)
    world.of(Rows).book.forget(asked.window)


PART: Final = Part(nothing, {export: 2}, look, divided=True)
