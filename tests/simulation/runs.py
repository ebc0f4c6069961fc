"""Runs of seeds, each in a process of its own, so that none sees what another has left in memory."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NamedTuple

from tests.simulation import (
    access,
    alarms,
    applications,
    devices,
    effects,
    exports,
    faults,
    files,
    kills,
    leftovers,
    link,
    moves,
    mqtt,
    old_data,
    people,
    presses,
    records,
    remains,
    repetitions,
    retained,
    shared,
    silences,
    site,
    streams,
    timers,
)
from tests.simulation.world import Outcome, Step, World

PARTS: Final = (
    site.PART,
    devices.PART,
    records.PART,
    access.PART,
    repetitions.PART,
    streams.PART,
    link.PART,
    mqtt.PART,
    effects.PART,
    alarms.PART,
    timers.PART,
    presses.PART,
    silences.PART,
    old_data.PART,
    remains.PART,
    files.PART,
    exports.PART,
    people.PART,
    retained.PART,
    shared.PART,
    applications.PART,
    kills.PART,
    moves.PART,
    faults.PART._replace(look=leftovers.look),
)
_FORKING: Final = get_context("fork")


class Result(NamedTuple):
    """What became of a seed: its history, or the fault that it found."""

    seed: int
    outcome: Outcome | None
    fault: str = ""
    """The traceback, with the last lines of the history."""
    broken: str = ""
    """The sentence of the promise that is broken."""


def in_this_process(seed: int, steps: list[Step] | None = None) -> Outcome:
    """Run a seed here. In a process that has run another one its history may differ."""
    return World(seed, PARTS, steps).run()


def result(seed: int, steps: list[Step] | None = None) -> Result:
    """Run one seed."""
    (only,) = results([seed], steps=steps)
    return only


def results(seeds: Iterable[int], jobs: int = 1, steps: list[Step] | None = None) -> Iterator[Result]:
    """Run seeds, `jobs` at a time, and yield what became of them, as they end."""
    running: dict[Connection, Any] = {}
    try:
        for seed in seeds:
            if len(running) == jobs:
                yield from _ended(running)
            receiver, sender = _FORKING.Pipe(duplex=False)
            process = _FORKING.Process(target=_run, args=(seed, steps, sender))
            process.start()
            sender.close()
            running[receiver] = process, seed
        while running:
            yield from _ended(running)
    finally:
        for process, _ in running.values():
            process.kill()


def _ended(running: dict[Connection, Any]) -> Iterator[Result]:
    """Wait until a process has ended, and yield what it has sent."""
    for receiver in wait(list(running)):
        assert isinstance(receiver, Connection)
        process, seed = running.pop(receiver)
        try:
            found: Result = receiver.recv()
        except EOFError:
            found = Result(seed, None, broken="the process died")
        receiver.close()
        process.join()
        yield found


def _run(seed: int, steps: list[Step] | None, sender: Connection) -> None:
    gc.disable()  # a run is short
    try:
        found = Result(seed, in_this_process(seed, steps))
    except BaseException as fault:  # noqa: BLE001 - it is told by whoever has asked for the run
        found = Result(seed, None, traceback.format_exc(), _sentence(fault))
    sender.send(found)
    sender.close()


def _sentence(fault: BaseException) -> str:
    """The first of a group is enough: the others follow from it."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return f"{type(fault).__name__}: {fault}"
