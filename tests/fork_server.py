"""A process that has imported the server and forks the Python programs that tests start.

An import of the whole server takes longer than what most of these programs then do. A forked program differs from one
that an operator starts only in that its modules are imported already: it has its own arguments, environment,
directory, standard streams and exit code, and it ends as every interpreter does. `tests/forked.py` is its client.

Run as `python -m tests.fork_server FD`: FD is a socket. Each message on it is a program, with five descriptors: the
three standard streams and one socket for the answers, which are its process id with a descriptor of the process, and
its end. It must have one thread only, because a fork copies no others.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any, Final

from tests.forked_popen import Forking

MESSAGE_BYTES: Final = 256 * 1024
FLUSH_FAILED: Final = 120
"""The exit code of an interpreter that could not write what was buffered."""
STANDARD: Final = 3
"""Descriptors of the standard streams: 0, 1 and 2."""
CHECKOUT: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("actors", "bench", "http", "limits", "store")
PR_SET_PDEATHSIG: Final = 1
LEFT_OUT: Final = ("trunkline.bench.neighbours",)
"""Programs that the server never imports."""


def import_rooms() -> None:
    """Import every module of the rooms."""
    files = (file for room in ROOMS for file in (CHECKOUT / room).rglob("*.py"))
    for file in sorted(files):
        parts = file.relative_to(CHECKOUT).with_suffix("").parts
        name = ".".join(("trunkline", *parts)).removesuffix(".__init__")
        if not name.startswith(LEFT_OUT) and file.name != "__main__.py":
            import_module(name)


def prepare_rooms() -> None:
    """Do once what would dominate the programs, as for the servers in the process of the tests."""
    from tests.password_hashes import hash_cheaply
    from trunkline.http.routes import TABLE
    from trunkline.http.site.site import Site
    from trunkline.http.version import VERSION

    hash_cheaply()
    Site(TABLE, VERSION)  # compresses the pages, which it keeps


class Child:
    """A forked program, as its parent sees it."""

    def __init__(self, id: int, descriptor: int, answers: socket.socket) -> None:
        self.id = id
        self.descriptor = descriptor
        self.answers = answers

    def ended(self) -> None:
        """Tell how it has ended, and what it has used."""
        _, status, usage = os.wait4(self.id, 0)
        told = {"code": os.waitstatus_to_exitcode(status), "cpu_s": usage.ru_utime + usage.ru_stime}
        with suppress(OSError):  # nobody may wait for it any more
            self.answers.sendall(json.dumps(told).encode())
        self.close()

    def close(self) -> None:
        """Close what the parent holds of it."""
        os.close(self.descriptor)
        self.answers.close()


def fork_programs(control: socket.socket) -> dict[str, Any] | None:
    """Fork what the messages ask for until the socket is closed. Returns the program to run, in each child."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    children: dict[int, Child] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in children:
                poll.unregister(descriptor)
                children.pop(descriptor).ended()
                continue
            message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, STANDARD + 1)
            if not message:
                return None
            answers = socket.socket(fileno=descriptors.pop())
            if (id := os.fork()) == 0:
                control.close()
                answers.close()
                for child in children.values():
                    child.close()
                ctypes.CDLL(None).prctl(
                    PR_SET_PDEATHSIG, signal.SIGKILL
                )  # no program outlives the run of the tests
                _take_streams(descriptors)
                return dict(json.loads(message))
            for each in descriptors:
                os.close(each)
            child = Child(id, os.pidfd_open(id), answers)
            children[child.descriptor] = child
            poll.register(child.descriptor, select.POLLIN)
            socket.send_fds(answers, [str(id).encode()], [child.descriptor])


def _take_streams(descriptors: list[int]) -> None:
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    _open_streams()


def _open_streams() -> None:
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w")  # type: ignore[misc]


def _stream(number: int, mode: str) -> io.TextIOWrapper:
    """A standard stream, as the interpreter makes it."""
    error = number == 2
    errors = "backslashreplace" if error else None
    stream = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    assert isinstance(stream, io.TextIOWrapper)
    stream.reconfigure(line_buffering=error or stream.isatty())
    return stream


def run(program: dict[str, Any]) -> None:
    """Run a program as the interpreter would: `-m MODULE`, `-c CODE` or a file, with its arguments."""
    os.chdir(program["cwd"])
    os.environ.clear()
    os.environ.update(program["env"])
    kind, *rest = program["arguments"]
    if kind == "-m":
        module, *arguments = rest
        sys.path[0], sys.argv = str(Path.cwd()), [kind, *arguments]
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        text, *arguments = rest
        sys.path[0], sys.argv = "", [kind, *arguments]
        code: CodeType = compile(text, "<string>", "exec")
        exec(code, sys.modules["__main__"].__dict__)
    else:
        sys.path[0], sys.argv = str(Path(kind).parent), [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def run_child(program: dict[str, Any]) -> None:
    """Run a program that a forked one has forked."""
    _open_streams()
    run(program)


class End:
    """The end of a program without that of the interpreter, which takes longer to free all modules than most programs.

    As the interpreter does, it waits for threads, runs what is registered for the exit, and writes what is buffered.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        atexit.register(self.now)  # registered first, it runs last

    def now(self) -> None:
        """End this process, if it is a program that has been run."""
        if self.code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                self.code = FLUSH_FAILED
        if self.code == -signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(self.code)

    def of(self, program: dict[str, Any]) -> None:
        """Run a program, and note its exit code."""
        self.code = 1
        try:
            run(program)
        except SystemExit as exit:
            if exit.code is None or isinstance(exit.code, int):
                self.code = (exit.code or 0) & 0xFF
            raise
        except KeyboardInterrupt:
            self.code = -signal.SIGINT
            raise
        self.code = 0


def main() -> None:
    """Import everything, then fork. Only a child comes to the program."""
    end = End()
    import_rooms()
    prepare_rooms()
    gc.collect()
    gc.freeze()
    threads = os.listdir("/proc/self/task")  # noqa: PTH208
    assert len(threads) == 1, threads
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with socket.socket(fileno=int(sys.argv[1])) as control:
        program = fork_programs(control)
    if program is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        Forking.run = staticmethod(run_child)
        subprocess.Popen = Forking  # type: ignore[misc]
        end.of(program)


if __name__ == "__main__":
    main()
