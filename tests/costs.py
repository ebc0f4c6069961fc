"""What a run of tests costs: `pytest --costs`. Core-seconds, because those do not depend on what else the machine does.

Owns noting, for each test, the processor time of its process and of the processes that it has started and waited for,
and the servers, actor systems and processes that it has started; and the tables at the end of the run. A process that
its starter has not waited for is not counted. A wall clock is not read.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, Final

import pytest

DIRECTORY: Final = "COSTS_OF_TESTS"
"""The variable that names the directory of the run; the processes of the run inherit it."""
SHOWN_MAX: Final = 30
COLLECTION: Final = "(collection)"

Row = dict[str, Any]


_children_s = 0.0
"""Processor time of processes that this one has started through another one."""
_started: Counter[str] = Counter()
"""What the test has started."""


def add_child(cpu_s: float) -> None:
    """Note the processor time of a process that ended, whose parent is not this process."""
    global _children_s
    _children_s += cpu_s


def count_process(command: Any) -> None:
    """Note that a test starts a process."""
    _started[kind_of_process(command)] += 1


class Meter:
    """The costs of this process of the run, one line a test in a file of its own."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / str(os.getpid())
        self._fixtures: dict[str, float] = defaultdict(float)
        self._count_systems()
        sys.addaudithook(self._heard)

    def pytest_collection_finish(self) -> None:
        """Note what it has cost to come so far."""
        own_s, children_s = _spent_s()
        self._write({"test": COLLECTION, "own_s": own_s, "children_s": children_s})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note what a test costs, with its fixtures."""
        _started.clear()
        self._fixtures.clear()
        own_s, children_s = _spent_s()
        result = yield
        own_after_s, children_after_s = _spent_s()
        self._write(
            {
                "test": item.nodeid,
                "own_s": own_after_s - own_s,
                "children_s": children_after_s - children_s,
                "started": _started,
                "fixtures": self._fixtures,
            }
        )
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        """Note what a fixture of more than one test costs: the test that comes first pays for the others."""
        own_s, children_s = _spent_s()
        result = yield
        own_after_s, children_after_s = _spent_s()
        if fixturedef.scope != "function":
            name = f"{fixturedef.scope} {fixturedef.argname}"
            self._fixtures[name] += own_after_s - own_s + children_after_s - children_s
        return result

    def _count_systems(self) -> None:
        """Count what is opened in this process: a server has an actor system, which a test may also have alone."""
        from trunkline.actors.core.runtime import system
        from trunkline.http.calls import dispatch

        for owner, name in ((system.System, "actor systems"), (dispatch.Dispatcher, "servers")):
            owner.__init__ = self._counted(owner.__init__, name)  # type: ignore[method-assign]

    def _counted(self, init: Callable[..., None], name: str) -> Callable[..., None]:
        def counted(*args: Any, **kw: Any) -> None:
            _started[name] += 1
            init(*args, **kw)

        return counted

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            count_process(args[1])

    def _write(self, row: Row) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")


def kind_of_process(command: Any) -> str:
    """What a command starts: `trunkline serve`, `trunkline` with any other command, Python or the name of a program."""
    words = [str(word) for word in command] if isinstance(command, list | tuple) else str(command).split()
    programs = ("trunkline.http.cli.main", "crash_program.py")
    if any(word.endswith(programs) for word in words[:3]) or any(
        word.endswith("/trunkline") for word in words[:2]
    ):
        return "trunkline serve" if "serve" in words else "other trunkline commands"
    name = Path(words[0]).name
    return "Python programs" if name.startswith("python") else f"{name} processes"


def _spent_s() -> tuple[float, float]:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime + _children_s


def begin(config: pytest.Config) -> None:
    """Note the costs of this process, if the run wants them."""
    if config.getoption("costs") and DIRECTORY not in os.environ:
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="costs-")
    if directory := os.environ.get(DIRECTORY):
        config.pluginmanager.register(Meter(Path(directory)), "costs")


def tables(rows: Iterable[Row]) -> list[str]:
    """The costs by kind of test, by file, by test and by shared fixture, and what was started."""
    rows = list(rows)
    kinds: dict[str, list[Row]] = defaultdict(list)
    files: dict[str, float] = defaultdict(float)
    fixtures: dict[str, float] = defaultdict(float)
    for row in rows:
        kinds[_kind(row["test"])].append(row)
        files[row["test"].partition("::")[0]] += _total(row)
        for name, seconds in row.get("fixtures", {}).items():
            fixtures[name] += seconds
    lines = [f"{'core-s':>8} {'own':>8} {'children':>9} {'tests':>6}  started"]
    for kind, those in sorted(kinds.items(), key=lambda found: -sum(map(_total, found[1]))):
        lines.append(_line(those, kind))
    lines += [_line(rows, "all"), "", "the most costly files, core-seconds"]
    lines += [f"{seconds:8.1f}  {name}" for name, seconds in _most(files)]
    lines += ["", "the most costly tests, core-seconds"]
    costly = sorted(rows, key=lambda row: -_total(row))
    lines += [f"{_total(row):8.1f}  {row['test']}" for row in costly[:SHOWN_MAX]]
    lines += ["", "the most costly fixtures of several tests, core-seconds"]
    return lines + [f"{seconds:8.1f}  {name}" for name, seconds in _most(fixtures)]


def _most(costs: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(costs.items(), key=lambda found: -found[1])[:SHOWN_MAX]


def _kind(test: str) -> str:
    file = test.partition("::")[0]
    return file if file == COLLECTION else "/".join(file.split("/")[:2])


def _total(row: Row) -> float:
    return float(row["own_s"] + row["children_s"])


def _line(rows: list[Row], name: str) -> str:
    started: Counter[str] = Counter()
    for row in rows:
        started.update(row.get("started", {}))
    said = ", ".join(f"{number} {what}" for what, number in started.most_common())
    own_s, children_s = sum(row["own_s"] for row in rows), sum(row["children_s"] for row in rows)
    return f"{own_s + children_s:8.1f} {own_s:8.1f} {children_s:9.1f} {len(rows):6}  {name}: {said or '-'}"


def summarize(reporter: pytest.TerminalReporter) -> None:
    """Print the tables, at the end of a run that wants them."""
    if not reporter.config.getoption("costs"):
        return
    directory = Path(os.environ[DIRECTORY])
    rows = [json.loads(line) for file in directory.iterdir() for line in file.read_text().splitlines()]
    reporter.section("what the run has cost")
    reporter.line(f"Every test: {directory}")
    for line in tables(rows):
        reporter.line(line)
