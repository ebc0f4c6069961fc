"""`subprocess.Popen` for programs of the rooms that the code under test starts, which then import nothing again.

`trunkline check` reads a directory in a process of its own, for example, and most tests of a crash check one. Such a
program is forked: `Forking` forks it from this process, which has one thread only, as a program does that the fork
server has started; `Served` has the fork server do it. Anything else is started as always.

Owns only how such a program begins and how its end is waited for. Does not own the fork server (`fork_server.py`).
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

MODULES: Final = "trunkline."
_FIRST_STREAM: Final = 3
"""The place of the descriptors of the standard streams among the last arguments of `_execute_child`: of each the end
of the child and that of this process, for standard input in this order, else in the other."""


class _Forked(subprocess.Popen[Any]):
    """Begins programs of the rooms in another way."""

    def _execute_child(
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        *rest: Any,
    ) -> None:
        given = (args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)
        if not isinstance(args, list) or args[:2] != [sys.executable, "-m"] or not self._may_begin(args[2]):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        ends = rest[_FIRST_STREAM : _FIRST_STREAM + 6]
        streams = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        program = {
            "arguments": [str(each) for each in args[1:]],
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or Path.cwd()),
        }
        self._begin(program, streams)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _may_begin(self, module: str) -> bool:
        return module.startswith(MODULES)

    def _begin(self, program: dict[str, Any], streams: Sequence[int]) -> None:
        raise NotImplementedError


class Forking(_Forked):
    """Forks them from this process."""

    run: Callable[[dict[str, Any]], None]
    """What runs a program in the child."""

    def _may_begin(self, module: str) -> bool:
        threads = os.listdir("/proc/self/task")  # noqa: PTH208
        return super()._may_begin(module) and len(threads) == 1

    def _begin(self, program: dict[str, Any], streams: Sequence[int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if (id := os.fork()) == 0:
            atexit._clear()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
            os.closerange(len(streams), os.sysconf("SC_OPEN_MAX"))
            _end_with(lambda: type(self).run(program))
        self.pid = id


def _end_with(work: Callable[[], None]) -> None:
    """Do some work in a child, and end it as an interpreter does that ran it."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1
    except BaseException:  # noqa: BLE001 - nothing of the program around it may go on in the child
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


class Served(_Forked):
    """Has the fork server of this process fork them. They are no children of this process."""

    def _begin(self, program: dict[str, Any], streams: Sequence[int]) -> None:
        from tests.forked import fork_server

        self.pid, self._descriptor, self._answers = fork_server().start(
            program["arguments"], program["env"], Path(program["cwd"]), streams
        )

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        return self.returncode if not hasattr(self, "_answers") else self._ended(wait=False)

    def _wait(self, timeout: float | None) -> int | None:
        if not hasattr(self, "_answers"):
            return super()._wait(timeout)  # type: ignore[misc,no-any-return]
        assert timeout is None, "no test waits for so long only"
        return self._ended(wait=True)

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if hasattr(self, "_answers") and self.poll() is None:
            signal.pidfd_send_signal(self._descriptor, signal.Signals(sig))

    def _ended(self, *, wait: bool) -> int | None:
        from tests import costs

        if self.returncode is None:
            self._answers.setblocking(wait)
            try:
                end = json.loads(self._answers.recv(65_536))
            except BlockingIOError:
                return None
            self.returncode = int(end["code"])
            costs.add_child(end["cpu_s"])
            self._answers.close()
            os.close(self._descriptor)
        return self.returncode
