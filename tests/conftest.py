"""What every test stands on: the checkout's path, an import path for the rooms, repeatable Hypothesis runs.

The rooms lie at the top of the checkout but are imported as `trunkline.<room>`. An installed checkout
(`pip install -e .`) sees to that itself. For one that is not installed, and for mypy, which does not
understand such installations, a tree of links is laid under `.tree/`:

    .tree/trunkline/<room> -> <room>        .tree/tests -> tests

It is not a single link `trunkline -> .`, because whoever walks the checkout would walk it for ever.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import argon2
import hypothesis
import pytest
import structlog

from tests import costs, turns
from tests.cut_runs import end_cut_runs
from tests.password_hashes import hash_cheaply
from tests.patience import PAGE_TEST_S

CHECKOUT = Path(__file__).resolve().parent.parent
TREE = CHECKOUT / ".tree"
MEMORY = Path("/dev/shm")
DISK = Path(tempfile.gettempdir())
"""Where programs of this machine keep temporary files."""
TEMPORARY_ROOT = "PYTEST_DEBUG_TEMPROOT"
"""The variable with which pytest is told where its directories lie; the processes of the run inherit it."""
ROOM_BYTES = 6 * 2**30
"""The directories of a whole run together have less than half of it."""
WORKERS_MAX = 8
"""Processes: each has to collect all tests first."""

ROOMS = ("actors", "bench", "http", "limits", "store")

# Hundreds of processes of a run import the same modules. With PYTHONDONTWRITEBYTECODE each of them would compile all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

hypothesis.settings.register_profile(
    "trunkline",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # which a busy machine is
)
hypothesis.settings.load_profile("trunkline")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this suite."""
    parser.addoption(
        "--turns", action="store_true", help="Tell at the end which turns of event loops were the longest."
    )
    parser.addoption(
        "--costs", action="store_true", help="Tell at the end which tests cost how many core-seconds."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the rooms importable, here and in the processes that tests start."""
    gc.disable()  # nothing that is collected is garbage
    # A traceback with the values of all variables takes a second, and the server does not write it either.
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    if find_spec("trunkline") is None or find_spec("trunkline.limits") is None:
        tree = str(link_tree())
        sys.path.insert(0, tree)
        importlib.invalidate_caches()
        inherited = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = tree if inherited is None else tree + os.pathsep + inherited
    if root := temporary_root():
        os.environ.setdefault(TEMPORARY_ROOT, str(root))
    turns.begin(config)
    costs.begin(config)
    # Property tests make a directory for each example, and cannot use `tmp_path` for it.
    tempfile.tempdir = os.environ.get(TEMPORARY_ROOT, tempfile.tempdir)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse sets as parameters: their order differs between the processes of a run, which then begins no test."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        if any(isinstance(values, set | frozenset) for values in (*mark.args, *mark.kwargs.values())):
            pytest.fail(
                f"{metafunc.definition.nodeid}: sort the parameters, a set has no order", pytrace=False
            )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: at the end one process would work alone. Pages of a browser have more time."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(PAGE_TEST_S))
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the modules and the tests out of later searches for garbage, which would go through all of them."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a load last longer than `faulthandler_timeout`, which ends tests that their time-outs cannot reach."""
    if item.get_closest_marker("load") is not None:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, object, object]:
    """End the event loop that a timeout has cut off, and make the report.

    It is made without collecting garbage, which may parse sources while the report does so: Python fails then
    (`SystemError: AST constructor recursion depth mismatch`), and the run ends.
    """
    if call.excinfo is not None:
        end_cut_runs(call.excinfo.tb)
    enabled = gc.isenabled()
    gc.disable()
    try:
        return (yield)
    finally:
        if enabled:
            gc.enable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A process for each core, and one more, as tests wait for a third of their time; none beside this one for tests
    chosen by file, name or mark (`-m load` among them).

    Who chooses a few tests wants their start, their output and a debugger at once; a load wants the machine for itself.
    """
    options = config.option
    chosen = options.keyword or options.markexpr != "not load" or any(".py" in name for name in config.args)
    return 0 if chosen else min(len(os.sched_getaffinity(0)) + 1, WORKERS_MAX)


def pytest_report_header(config: pytest.Config) -> str:
    """Say which code is under test: a plain `pip install .` would leave an old copy in the way."""
    import trunkline.limits

    return f"trunkline: {Path(trunkline.limits.__file__).parent.parent}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that pages were not tested, which a line among many skipped tests does not, and what was asked for."""
    turns.summarize(terminalreporter)
    costs.summarize(terminalreporter)
    skipped = [
        each for each in terminalreporter.stats.get("skipped", ()) if "no Chromium" in str(each.longrepr)
    ]
    if skipped:
        terminalreporter.section("the console was NOT tested", red=True, bold=True)
        terminalreporter.line(f"{len(skipped)} tests need a Chromium, and this machine has none.")
        terminalreporter.line(
            "Install it and run them: apt install chromium && .venv/bin/pytest tests/console"
        )


def temporary_root(memory: Path = MEMORY, room_bytes: int = ROOM_BYTES) -> Path | None:
    """The file system in memory, if there is one with room: a commit on a disk takes longer than most tests compute."""
    if not memory.is_mount() or not os.access(memory, os.W_OK):
        return None
    return memory if shutil.disk_usage(memory).free >= room_bytes else None


@pytest.fixture(scope="session")
def disk_path() -> Iterator[Path]:
    """A directory for tests marked `disk`."""
    with tempfile.TemporaryDirectory(prefix="trunkline-tests-", dir=DISK, ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.fixture(scope="session", autouse=True)
def cheap_hashes() -> None:
    """Hash passwords at the lowest cost in this process."""
    hash_cheaply()


@pytest.fixture
def full_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that depends on what a hash costs: as the server makes them."""
    from trunkline.actors.people.accounts import passwords

    monkeypatch.setattr(passwords, "_hasher", argon2.PasswordHasher())


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory of the test: in memory, unless the test is marked `disk`."""
    if request.node.get_closest_marker("disk") is None:
        return tmp_path
    return Path(tempfile.mkdtemp(prefix=f"{tmp_path.name}-", dir=request.getfixturevalue("disk_path")))


def link_tree() -> Path:
    """Lay the tree of links, or complete it, and return its path. Several runs may do so at once."""
    package = TREE / "trunkline"
    package.mkdir(parents=True, exist_ok=True)
    links = {package / room: Path("..", "..", room) for room in ROOMS}
    links[TREE / "tests"] = Path("..", "tests")
    for link, target in links.items():
        try:
            link.symlink_to(target, target_is_directory=True)
        except FileExistsError:
            continue
    return TREE


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The directory that holds pyproject.toml."""
    return CHECKOUT


@pytest.fixture(scope="session")
def linked_tree() -> Path:
    """A directory in which every room lies as trunkline/<room>, and the tests as tests/."""
    return link_tree()


@pytest.fixture(scope="session")
def rooms() -> tuple[str, ...]:
    """The names of the rooms."""
    return ROOMS
