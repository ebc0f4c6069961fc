"""The programs of a comparison are stopped in every case; one that fails is reported in a sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from tests.patience import PATIENCE_S
from tests.ports import reserved_port
from trunkline.bench.programs import ProgramUnavailable, Workspace


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace", [], None)


async def test_a_program_is_stopped_by_its_id_and_its_directory_deleted(workspace: Workspace) -> None:
    with reserved_port() as port, trio.fail_after(PATIENCE_S):
        workspace.start(
            python(f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); time.sleep(600)")
        )
        await workspace.listens(port)
    (pid,) = workspace.pids
    assert psutil.pid_exists(pid)
    workspace.close()
    assert not psutil.pid_exists(pid)
    assert not workspace.directory.exists()


@pytest.mark.parametrize("interrupted", ["starting", "stopping"])
def test_an_interruption_while_a_program_is_started_or_stopped_leaves_none_running(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            processes.append(self)
            if interrupted == "starting":
                signal.raise_signal(signal.SIGINT)

        def send_signal(self, sig: int) -> None:
            if interrupted == "stopping":
                signal.raise_signal(signal.SIGINT)
            super().send_signal(sig)

    async def compare_once() -> None:
        try:
            workspace.start(python("import time; time.sleep(600)"))
            await trio.lowlevel.checkpoint()
        finally:
            workspace.close()
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            trio.run(compare_once)
        (process,) = processes
        assert process.returncode is not None
    finally:
        signal.signal(signal.SIGINT, before)
        for process in processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()


async def test_a_stubborn_program_is_killed_with_what_it_started(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.bench.programs.STOP_TIMEOUT_S", 0.1)
    told = workspace.directory / "child"
    workspace.start(
        python(
            "import pathlib, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"pathlib.Path({str(told)!r} + '.new').write_text(str(child.pid))\n"
            f"pathlib.Path({str(told)!r} + '.new').rename({str(told)!r}); time.sleep(600)"
        )
    )
    with trio.fail_after(PATIENCE_S):
        await workspace.until(told.exists)
    child = psutil.Process(int(told.read_text()))
    workspace.close()
    assert not psutil.pid_exists(workspace.pids[0])
    child.wait(PATIENCE_S)


async def test_a_program_that_ends_is_a_sentence_with_its_last_line(workspace: Workspace) -> None:
    workspace.start(python("print('first'); print('the port is taken'); raise SystemExit(3)"))
    with (
        trio.fail_after(PATIENCE_S),
        pytest.raises(ProgramUnavailable, match=r"python\S* ended with 3: the port is taken"),
        reserved_port() as port,
    ):
        await workspace.listens(port)
    workspace.close()


async def test_a_command_that_fails_or_hangs_is_a_sentence(workspace: Workspace) -> None:
    with trio.fail_after(PATIENCE_S):
        assert await workspace.run(python("print(' done ')")) == "done"
        with pytest.raises(ProgramUnavailable, match=r"python\S* failed: no room"):
            await workspace.run(python("print('no room'); raise SystemExit(1)"))
        with pytest.raises(ProgramUnavailable, match=r"did not end in 0\.1 s"):
            await workspace.run(python("import time; time.sleep(600)"), timeout_s=0.1)
    workspace.close()


def test_a_program_is_found_or_named_with_its_package(tmp_path: Path) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    (own / "mosquitto").write_text("#!/bin/sh\n")
    (own / "mosquitto").chmod(0o755)
    workspace = Workspace(tmp_path / "workspace", [own], None)
    assert workspace.find("mosquitto", "mosquitto") == str(own / "mosquitto")
    with pytest.raises(
        ProgramUnavailable, match=r"no-such-thing is not installed \(Debian: apt-get install thing\)\."
    ):
        workspace.find("no-such-thing", "thing")
