"""A forked program is as one that is started: its arguments, environment, directory, streams, signals and exit code."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.server_process import trunkline
from tests.forked import CHECKOUT, ForkServer, open_forked, run_forked
from tests.forked_popen import Served
from tests.patience import PATIENCE_S

REPORT = """
import os, signal, sys, threading
print(sys.argv, [os.environ["A"], "HOME" in os.environ], os.getcwd(), __name__, sys.path[0], sys.stdin.read())
sys.stdout.flush()
print("said", file=sys.stderr)
print(sorted(os.listdir("/proc/self/fd")), [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)])
"""
ENDS = {
    "none": "pass",
    "exit": "raise SystemExit",
    "number": "raise SystemExit(3)",
    "sentence": "raise SystemExit('It is over.')",
    "failure": "raise ValueError('wrong')",
    "interrupt": "raise KeyboardInterrupt",
    "signal": "import os; os.kill(os.getpid(), 15)",
    "left": "import os; os._exit(9)",
    "atexit": "import atexit; atexit.register(print, 'last'); print('first')",
    "thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.01), print('thread'))).start()",
    "broken": "import os, sys\nprint('x')\nos.close(1)",
}


def started(arguments: list[str], cwd: Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={"A": "b"},
        cwd=cwd,
        input=b"in",
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
        # As in a terminal: what a shell runs in its background would inherit that interrupts are ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    return done.returncode, done.stdout, done.stderr


async def forked(arguments: list[str], cwd: Path) -> tuple[int, bytes, bytes]:
    with trio.fail_after(PATIENCE_S):
        done = await run_forked(arguments, env={"A": "b"}, cwd=cwd, stdin=b"in")
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["module", "code", "file"])
async def test_a_forked_program_finds_what_a_started_one_finds(tmp_path: Path, kind: str) -> None:
    (tmp_path / "report.py").write_text(REPORT)
    first = {"module": ["-m", "report"], "code": ["-c", REPORT], "file": [str(tmp_path / "report.py")]}[kind]
    arguments = [*first, "one", "-m"]
    assert await forked(arguments, tmp_path) == started(arguments, tmp_path)


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
async def test_a_forked_program_ends_as_a_started_one(tmp_path: Path, program: str) -> None:
    there, here = started(["-c", program], tmp_path), await forked(["-c", program], tmp_path)
    assert here[:2] == there[:2]
    if "Exception ignored" not in there[2].decode():
        # Only the last line: a traceback has the frames of the fork server too.
        assert here[2].splitlines()[-1:] == there[2].splitlines()[-1:]


async def test_a_forked_program_gets_signals_and_is_waited_for() -> None:
    program = "import signal\nprint('ready', flush=True)\nsignal.pause()"
    process = open_forked(["-c", program], env={}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with trio.fail_after(PATIENCE_S):
        assert await process.stdout.receive_some() == b"ready\n"
        assert process.poll() is None
        process.send_signal(signal.SIGUSR1)
        assert await process.wait() == -signal.SIGUSR1
    process.kill()
    assert (process.poll(), process.returncode) == (-signal.SIGUSR1, -signal.SIGUSR1)
    await process.stdout.aclose()


async def test_no_program_outlives_its_fork_server() -> None:
    """Which ends when its run of the tests ends, however that happens."""
    server = ForkServer()
    program = ["-c", "import signal; print('ready', flush=True); signal.pause()"]
    read, write = os.pipe()
    _, descriptor, answers = server.start(program, {}, Path.cwd(), [0, write, 2])
    os.close(write)
    async with trio.lowlevel.FdStream(read) as output:
        with answers, trio.fail_after(PATIENCE_S):
            assert await output.receive_some() == b"ready\n"
            server.end()
            await trio.lowlevel.wait_readable(descriptor)
            assert await output.receive_some() == b""
    os.close(descriptor)


def test_a_fork_server_that_has_ended_is_told() -> None:
    server = ForkServer()
    server.end()
    server._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    with server._control, pytest.raises(RuntimeError, match="has ended"):
        server.start(["-c", "pass"], {}, Path.cwd(), [0, 1, 2])


async def test_a_command_is_forked_with_the_server_imported() -> None:
    """And a cold one is not: what differs is only what is imported when it begins."""
    program = "import sys; print('trunkline.http.serve' in sys.modules)"
    assert await forked(["-c", program], Path.cwd()) == (0, b"True\n", b"")
    assert started(["-c", program], Path.cwd()) == (0, b"False\n", b"")
    warm, cold = [await trunkline("--version", cold=each) for each in (False, True)]
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)
    assert warm.stdout


VERIFY = """
import subprocess, sys
from functools import partial
from pathlib import Path
command = [sys.executable, *sys.argv[1:]]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
    print("fork_server" in Path(f"/proc/{child.pid}/cmdline").read_text())
    child.stdin.write("null")
    child.stdin.close()
    print(child.stdout.read())
print(child.returncode)
"""
CHECK = "trunkline.actors.maintenance.verify"


@pytest.mark.parametrize("first", [["-m", CHECK], ["-P", "-m", CHECK]], ids=["forked", "started"])
async def test_a_forked_program_forks_programs_of_the_rooms_and_starts_others(
    tmp_path: Path, first: list[str]
) -> None:
    arguments = ["-c", VERIFY, *first, str(tmp_path / "data"), str(tmp_path / "keys"), "0"]
    done = await run_forked(arguments, env=dict(os.environ), cwd=tmp_path)
    is_forked, said, *_, code = done.stdout.decode().splitlines()
    assert (is_forked, json.loads(said)[0], code) == (str("-P" not in first), "refused", "0"), done


@pytest.mark.parametrize(
    ("words", "code"), [("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", -9), ("1 / 0", 1)]
)
async def test_the_end_of_a_program_that_was_forked_by_a_forked_one_is_seen(
    tmp_path: Path, words: str, code: int
) -> None:
    """It is that of a module of the rooms; here one that reads its sentence from the environment."""
    program = (
        "import atexit, os, subprocess, sys\n"
        "from tests.forked_popen import Forking\n"
        "def run(program):\n"
        "    import os\n"
        "    exec(program['env']['WORDS'])\n"
        "Forking.run = staticmethod(run)\n"
        "atexit.register(print, 'once')\n"
        f"done = subprocess.run([sys.executable, '-m', {CHECK!r}], capture_output=True)\n"
        "print(done.returncode, done.stdout, b'Traceback' in done.stderr)\n"
    )
    environment = {**os.environ, "WORDS": words, "PYTHONPATH": str(CHECKOUT)}
    done = await run_forked(["-c", program], env=environment, cwd=CHECKOUT)
    assert done.stdout.decode().splitlines() == [f"{code} b'' {code == 1}", "once"], done


def test_a_program_that_the_fork_server_forks_for_popen_ends_as_one_that_is_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", CHECK, str(tmp_path / "data"), str(tmp_path / "keys"), "0"]
    ends = []
    for popen in (Served, subprocess.Popen):
        pipe = subprocess.PIPE
        with popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
            said, errors = child.communicate("null")
        ends.append((said, errors, child.returncode, child.poll()))
    assert ends[0] == ends[1]
    with Served(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.kill()
    assert child.returncode == -signal.SIGKILL
