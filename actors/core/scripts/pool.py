"""The pool of child processes that run scripts.

Owns the processes and the bounds of a call. Does not own the order of the calls (`core/runtime/owner_shares.py`), nor
what a process does (`child.py`). No process is started before the first call needs it. A call is driven by the task of
its caller, so a cancelled caller takes its process with it, and no answer reaches a call that it does not belong to.
"""

from __future__ import annotations

import signal
from typing import Any, Final

import msgspec
import structlog
import trio

from trunkline.actors.core.runtime.computing import INLINE_JSON_BYTES, decoded, encoded
from trunkline.actors.core.runtime.owner_shares import OwnerShares
from trunkline.actors.core.scripts.errors import CRASHED, TIMEOUT, TOO_LARGE, ScriptError
from trunkline.actors.core.scripts.process import ScriptProcess
from trunkline.actors.core.scripts.protocol import Answer, Bounds, Call, Failure, LogLine
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.core.values.nesting import NESTING_MAX
from trunkline.limits.table import Limits

_ESCAPED: Final = 6
"""A byte of a text takes up to six in JSON."""
_FAILURE_BYTES: Final = 64 * 1024
"""More than a name, message and stack take, as the prelude cuts them."""

_log = structlog.get_logger("trunkline.scripts")
_answers = msgspec.json.Decoder(Answer)


class ScriptResult(msgspec.Struct, frozen=True):
    """The payload after a call, and what the script wrote to the console."""

    value: Any
    logs: tuple[LogLine, ...]


class ScriptPool:
    """The processes of one system. Run `run` in a nursery for as long as it is used."""

    def __init__(self, limits: Limits) -> None:
        self.started = 0
        """Processes that were started."""
        self.lost = 0
        """Processes that ended or were killed during a call."""
        self._limits = limits
        self._bounds = Bounds(
            cpu_s=limits.script_cpu_s,
            memory_bytes=limits.script_memory_bytes,
            address_space_bytes=limits.script_address_space_bytes,
            payload_bytes_max=limits.script_payload_bytes_max,
            nesting_max=NESTING_MAX,
            log_bytes_max=limits.script_log_bytes_max,
        )
        logs_bytes_max = 2 * _ESCAPED * limits.script_log_bytes_max
        self._answer_bytes_max = limits.script_payload_bytes_max + logs_bytes_max + _FAILURE_BYTES
        self._shares = OwnerShares(
            "scripts", limits.script_processes_max, limits.script_queue_length_max, leaves=1
        )
        self._idle: list[ScriptProcess] = []
        self._busy: set[ScriptProcess] = set()
        self._runs = False

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a process."""
        return self._shares.waiting

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in (*self._idle, *self._busy)]

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve calls until cancelled. Then no process is left, and calls that still run fail."""
        self._runs = True
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            self._runs = False
            for process in (*self._idle, *self._busy):
                await process.end()
            self._idle.clear()

    async def call(
        self, script: str, payload: Any, *, owner: bytes, wall_s: float | None = None
    ) -> ScriptResult:
        """Run a script with a payload (a JSON value) and return what became of it.

        The call is charged to `owner`, who has at most half of the processes. `wall_s` may shorten the time that the
        call runs, without the time that it waits for its turn. Raises `ScriptError`; `Overloaded` if too many calls
        wait, or the pool does not run.
        """
        limits = self._limits
        if len(script) > limits.script_length_max:
            sentence = f"The script has {len(script)} characters; {limits.script_length_max} are allowed."
            raise ScriptError(Failure("ValidationError", sentence))
        text = await encoded(payload)
        if len(text) > limits.script_payload_bytes_max:
            sentence = f"The payload is larger than {limits.script_payload_bytes_max} bytes."
            raise ScriptError(Failure(TOO_LARGE, sentence))
        call = msgspec.json.encode(Call(script, msgspec.Raw(text)))
        run_s = limits.script_wall_s if wall_s is None else min(wall_s, limits.script_wall_s)
        async with self._shares.place(owner):
            answer = await self._answer(call, run_s)
        if answer.error is not None:
            raise ScriptError(answer.error, answer.logs)
        return ScriptResult(answer.value, tuple(answer.logs))

    async def _answer(self, call: bytes, run_s: float) -> Answer:
        process = await self._take_process()
        answer: Answer | None = None
        reason = "it took too long"
        try:
            with trio.move_on_after(run_s) as timeout:
                answer = await _decoded(await process.exchange(call))
        except (trio.BrokenResourceError, msgspec.DecodeError) as error:
            reason = str(error)
        finally:
            self._busy.discard(process)
            if answer is None:
                self.lost += 1
                code = await process.end()
        if answer is None:
            _log.warning("process of scripts lost", exit_code=code, reason=reason)
            return Answer(error=_loss(code, run_s, timed_out=timeout.cancelled_caught))
        if self._runs and process.calls < self._limits.script_process_calls_max:
            self._idle.append(process)
        else:
            await process.end()
        return answer

    async def _take_process(self) -> ScriptProcess:
        """An idle process, or a new one, which is busy now."""
        while self._runs and self._idle:
            process = self._idle.pop()
            if not process.ended:
                self._busy.add(process)
                return process
            await process.end()
        if self._runs:
            process = await ScriptProcess.start(self._bounds, self._answer_bytes_max)
            self.started += 1
            if self._runs:
                self._busy.add(process)
                return process
            await process.end()
        raise Overloaded("The server is stopping, and runs no scripts.")


async def _decoded(text: bytes) -> Answer:
    """An answer, whose value may be long."""
    if len(text) <= INLINE_JSON_BYTES:
        return _answers.decode(text)
    found = await decoded(text)
    value = found.pop("value", None) if isinstance(found, dict) else None
    return msgspec.structs.replace(msgspec.convert(found, Answer), value=value)


def _loss(code: int | None, run_s: float, *, timed_out: bool) -> Failure:
    """Why a call has no answer."""
    if timed_out:
        return Failure(TIMEOUT, f"The script did not end within {run_s:g} s.")
    if code == -signal.SIGXCPU:
        return Failure(TIMEOUT, "The script could not be interrupted, and used too much CPU time.")
    return Failure(
        CRASHED, f"The process of the script ended (exit code {code}). Other scripts are not affected."
    )
