"""`trunkline cluster try`: three machines and three NATS servers, of which one machine is lost.

A load, as a machine that is held up for 1.5 s is replaced: `pytest -m load tests/e2e/test_cluster_try.py`
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import psutil
import pytest
import trio

from tests.e2e.server_process import CLI, trunkline
from tests.patience import PATIENCE_S
from tests.ports import taken_port

pytestmark = [pytest.mark.slow, pytest.mark.load]


async def test_a_machine_of_the_trial_is_lost_and_comes_back(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with taken_port() as holder:
        port = holder.getsockname()[1]
    command = [sys.executable, *CLI, "cluster", "try", "--data", str(directory), "--port", str(port)]
    output = tmp_path / "printed"
    with output.open("wb") as printed:
        process = await trio.lowlevel.open_process(command, stdout=printed, stderr=printed)
    try:
        group = int((await prints(output, r"kill -9 -- -(\d+)"))[1])
        children = psutil.Process(process.pid).children(recursive=True)
        told = await status(directory / "b", "serves, epoch \\d+\n")
        assert told.count("has all") == 2
        assert told.count("leads") == 1
        assert told.count("follows, ") == 2
        os.killpg(group, signal.SIGKILL)
        await prints(output, r"[bc]: Trunkline serves")
        await prints(output, r"a: Standby a")
        assert "At risk" not in await status(directory / "b", "a at .*: follows")
    finally:
        process.send_signal(signal.SIGINT)
        with trio.fail_after(PATIENCE_S):
            code = await process.wait()
    assert code == 0, _found(output, r"(?s).*")
    assert not [each for each in children if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def prints(output: Path, pattern: str) -> re.Match[str]:
    """Wait until what was printed matches."""
    with trio.fail_after(PATIENCE_S):
        while True:
            found = _found(output, pattern)
            if found is not None:
                return found
            await trio.lowlevel.checkpoint()


def _found(output: Path, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, output.read_text())


async def status(data: Path, pattern: str) -> str:
    """What a machine tells of all, as soon as it matches."""
    with trio.fail_after(PATIENCE_S):
        while True:
            done = await trunkline("cluster", "status", "--data", str(data))
            if re.search(pattern, done.stdout):
                return done.stdout


async def test_a_trial_says_why_a_machine_cannot_be_started(tmp_path: Path) -> None:
    with taken_port() as holder:
        holder.listen()
        port = holder.getsockname()[1]
        refused = await trunkline("cluster", "try", "--data", str(tmp_path / "cluster"), "--port", str(port))
    assert refused.returncode == 1
    assert f"a cannot be started: 127.0.0.1:{port} cannot be listened on" in refused.stderr
