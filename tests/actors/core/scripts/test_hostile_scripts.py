"""Scripts that try to harm: each fails alone, and the next call works.

The processes are real. Where the end depends on how much else the machine does, more than one error is right.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.actors.core.scripts.pools import APP, failure, running_pool, value
from tests.patience import PATIENCE_S
from trunkline.actors.core.scripts.child import Sandbox
from trunkline.actors.core.scripts.errors import ScriptError
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.actors.core.scripts.protocol import Bounds
from trunkline.actors.core.values.errors import Overloaded
from trunkline.limits.table import Limits

pytestmark = pytest.mark.slow

MEMORY = {"InternalError", "RangeError"}
STACK = {"RangeError", "InternalError"}
TIME = {"ScriptTimeout"}
RESULT = {"FunctionNodeTypeError"}
ANY_BOUND = MEMORY | STACK | TIME | RESULT | {"PayloadTooLarge", "ScriptCrashed"}

HOSTILE: dict[str, tuple[str, set[str]]] = {
    "endless loop": ("for (;;) {}", TIME),
    "endless loop that catches": ("for (;;) try { for (;;) {} } catch { }", TIME),
    "endless finally": ("try { for (;;) {} } finally { for (;;) {} }", TIME),
    "endless promise": ("new Promise(() => { for (;;) {} }); return 1", TIME),
    "endless promises": ("for (;;) new Promise(() => { for (;;) {} })", TIME),
    "endless getter": ("return {get a() { for (;;) {} }}", TIME),
    "endless toJSON": ("return {toJSON() { for (;;) {} }}", TIME),
    "endless message": ("throw {get message() { for (;;) {} }}", TIME),
    "endless proxy": ("return new Proxy({}, {ownKeys() { for (;;) {} }})", TIME),
    "endless sort": ("[3, 2, 1].sort(() => { for (;;) {} })", TIME),
    "endless log": ("for (;;) console.log('x'.repeat(1e5))", TIME),
    "endless values to log": ("console.log({toJSON() { for (;;) {} }})", TIME),
    "catastrophic expression": ("return /(a+)+$/.test('a'.repeat(40) + 'b')", TIME),
    "endless recursion": ("function f() { f() }; f()", STACK),
    "recursion that catches": ("function f() { try { f() } catch { f() } }; f()", ANY_BOUND),
    "recursion in toJSON": ("const o = {toJSON() { return JSON.stringify(o) }}; return o", RESULT),
    "growing text": ("let s = 'x'; for (;;) s += s", MEMORY),
    "growing array": ("const a = []; for (;;) a.push({a})", MEMORY | TIME),
    "growing typed arrays": ("const a = []; for (;;) a.push(new Uint8Array(1e6))", MEMORY),
    "growing object": ("const o = {}; for (let i = 0;; i++) o['key' + i] = i", MEMORY | TIME),
    "growth that catches": (
        "const a = []; for (;;) try { for (;;) a.push('x'.repeat(1e5) + a.length) } catch { }",
        ANY_BOUND,
    ),
    "huge buffer": ("new ArrayBuffer(2 ** 40)", MEMORY),
    "huge array": ("new Array(2 ** 32 - 1).fill(0)", MEMORY | TIME),
    "huge pad": ("return 'x'.padEnd(2 ** 29)", MEMORY | {"PayloadTooLarge"}),
    "huge result": ("return 'x'.repeat(2e7)", {"PayloadTooLarge"}),
    "huge result of escapes": ("return '\\0'.repeat(4e6)", {"PayloadTooLarge"} | MEMORY),
    "deep result": ("let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; return o", RESULT),
    "deep array": ("let o = []; for (let i = 0; i < 2000; i++) o = [o]; return o", RESULT),
    "raw text": ("return JSON.rawJSON('\"\\ud800\"')", RESULT | {"TypeError", "SyntaxError"}),
    "blocked thread": ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", {"TypeError"}),
    "hostile error": ("throw {get message() { throw 1 }, get name() { throw 2 }, get stack() { throw 3 }}", {"Error"}),
    "error without a text": ("throw {toString() { throw 1 }, toJSON() { throw 2 }}", {"Error"}),
    "huge error": (
        "const e = new Error('x'.repeat(1e7)); e.stack = 'y'.repeat(1e7); e.name = 'n'.repeat(1e7); throw e",
        {"n" * 255},
    ),
    "end of the function": ("}); for (;;) {} (function () {", TIME),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_script_fails_alone(name: str) -> None:
    script, expected = HOSTILE[name]
    async with running_pool(script_cpu_s=0.1 if expected >= TIME else 5) as pool:
        error = await failure(pool, script, {})
        assert error.name in expected, error
        assert len(error.message) <= 4096
        assert await value(pool, "payload.b = 1", {"a": 1}) == {"a": 1, "b": 1}


def test_an_interruption_is_a_timeout_whatever_the_clock_of_the_process_says() -> None:
    """The engine has a clock of its own, which may be ahead."""
    sandbox = Sandbox(Bounds(60, 2**26, 2**30, 2**20, 30, 2**16))
    sandbox._context.set_time_limit(0.001)
    answer = json.loads(sandbox.run(json.dumps({"script": "for (;;) {}", "payload": {}})))
    assert answer["error"]["name"] == "ScriptTimeout"


SPOILING = (
    # Each would spoil later calls if contexts were shared.
    "Object.prototype.x = 1; Array.prototype.y = 1; Object.prototype.toJSON = () => 5",
    "JSON.stringify = () => '{'; JSON.parse = () => 7; JSON = null",
    "console = null; Buffer = null; globalThis.leftOver = 1",
    "String.prototype.slice = String.prototype.charCodeAt = Array.prototype.join = () => { throw 1 }",
    "Object.defineProperty(Array.prototype, 0, {set() { throw 1 }}); Object.freeze(Object.prototype)",
    "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null",
    "Promise.resolve().then(() => { for (;;) {} }); queueMicrotask(() => { for (;;) {} })",
    "import('os'); Promise[Symbol.hasInstance]",
    "for (const key of Reflect.ownKeys(globalThis)) try { delete globalThis[key] } catch { }",
)
SEEN = """
    const own = Object.keys(globalThis).filter((key) => key === "leftOver")
    const prototypes = [{}.x, [].y, {}.toJSON, ({}).a].filter((each) => each !== undefined)
    return [own, prototypes, JSON.stringify(JSON.parse('{"a":[1]}')), "abc".slice(1), typeof Buffer, typeof console.log,
            Object.isFrozen(Object.prototype)]
    """


@pytest.mark.parametrize("script", SPOILING)
async def test_nothing_is_left_for_the_next_call(script: str) -> None:
    async with running_pool() as pool:
        with contextlib.suppress(ScriptError):  # a script may harm its own result
            await value(pool, f"{script}; console?.log?.('still here')", {"a": [1]})
        seen = await value(pool, SEEN)
        assert seen == [[], [], '{"a":[1]}', "bc", "function", "function", False]
        assert pool.started == 1


async def test_the_system_bounds_what_the_library_does_not() -> None:
    """The library would give the script more than the process can have."""
    async with running_pool(script_memory_bytes=2**40, script_address_space_bytes=2**27) as pool:
        for script in (
            "const a = []; for (;;) a.push(new Uint8Array(1e6))",
            "let s = 'x'; for (;;) s += s.slice(1) + s",
        ):
            assert (await failure(pool, script)).name in MEMORY | {"ScriptCrashed"}
            assert await value(pool, "return 1") == 1


async def test_a_process_that_is_killed_fails_one_call() -> None:
    async with running_pool() as pool, trio.open_nursery() as nursery:
        assert await value(pool, "return 1") == 1
        (pid,) = pool.pids

        async def kill_when_sent() -> None:
            await wait_all_tasks_blocked()
            os.kill(pid, signal.SIGKILL)

        nursery.start_soon(kill_when_sent)
        error = await failure(pool, "for (;;) {}")
        assert (error.name, "exit code -9" in error.message) == ("ScriptCrashed", True)
        assert await value(pool, "return 2") == 2
        assert (pool.started, pool.lost) == (2, 1)


async def test_a_process_that_died_while_idle_fails_no_call() -> None:
    async with running_pool() as pool:
        assert await value(pool, "return 1") == 1
        process = psutil.Process(pool.pids[0])
        descriptor = os.pidfd_open(process.pid)
        process.kill()
        await trio.lowlevel.wait_readable(descriptor)
        os.close(descriptor)
        assert await value(pool, "return 2") == 2
        assert (pool.started, pool.lost) == (2, 0)


async def test_the_clock_on_the_wall_ends_what_the_bound_on_cpu_does_not() -> None:
    """A stopped process uses no CPU."""
    async with running_pool() as pool:
        assert await value(pool, "return 1") == 1
        os.kill(pool.pids[0], signal.SIGSTOP)
        with pytest.raises(ScriptError) as caught:
            await pool.call("return 2", 1, owner=APP, wall_s=0.05)
        assert (caught.value.name, caught.value.message) == (
            "ScriptTimeout",
            "The script did not end within 0.05 s.",
        )
        assert await value(pool, "return 3") == 3
        assert (pool.started, pool.lost) == (2, 1)


async def test_the_answer_of_a_cancelled_call_reaches_nobody() -> None:
    async with running_pool() as pool:
        assert await value(pool, "return 'first'") == "first"
        (pid,) = pool.pids
        async with trio.open_nursery() as nursery:
            nursery.start_soon(value, pool, "for (let i = 0; i < 1e6; i++) {} return 'cancelled'")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert not psutil.pid_exists(pid)
        assert [await value(pool, f"return {number}") for number in range(3)] == [0, 1, 2]


async def test_a_call_that_waits_can_be_cancelled() -> None:
    async with running_pool() as pool:
        await value(pool, "")
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(value, pool, "for (;;) {}")
            await wait_all_tasks_blocked()
            assert pool.waiting == 2
            nursery.cancel_scope.cancel()
        assert pool.waiting == 0
        assert await value(pool, "return 1") == 1


async def test_a_process_is_replaced_after_its_calls() -> None:
    async with running_pool(script_process_calls_max=2) as pool:
        for number in range(5):
            assert await value(pool, f"return {number}") == number
        assert (pool.started, pool.lost) == (3, 0)


async def test_calls_run_side_by_side_and_in_their_processes_only() -> None:
    async with running_pool(script_processes_max=2) as pool, trio.open_nursery() as nursery:

        async def one(number: int) -> None:
            assert await value(pool, "return payload", number) == number

        for number in range(50):
            nursery.start_soon(one, number)
        await wait_all_tasks_blocked()
        assert pool.started <= 2


async def test_a_pool_that_is_stopped_ends_its_calls() -> None:
    pool = ScriptPool(Limits())
    with trio.fail_after(PATIENCE_S), pytest.raises(Overloaded):
        await value(pool, "return 1")
    caught: list[str] = []

    async def call() -> None:
        caught.append((await failure(pool, "for (;;) {}")).name)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            await inner.start(pool.run)
            await value(pool, "")
            outer.start_soon(call)
            await wait_all_tasks_blocked()
            inner.cancel_scope.cancel()
    assert caught == ["ScriptCrashed"]
    assert pool.pids == []


async def test_a_process_has_nothing_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_ADMIN_PASSWORD", "secret")
    inheritable = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    try:
        async with running_pool() as pool:
            await value(pool, "")
            process = psutil.Process(pool.pids[0])
            assert set(process.environ()) <= {"PYTHONPATH", "LD_LIBRARY_PATH", "LC_CTYPE"}
            proc = Path("/proc") / str(process.pid)
            assert {entry.name for entry in (proc / "fd").iterdir()} == {"0", "1", "2"}
            assert os.getsid(process.pid) == process.pid != os.getsid(0)
            assert process.rlimit(psutil.RLIMIT_AS)[0] == 256 * 2**20
            assert [process.rlimit(kind)[0] for kind in (psutil.RLIMIT_FSIZE, psutil.RLIMIT_CORE)] == [0, 0]
            assert process.rlimit(psutil.RLIMIT_NOFILE)[0] == 3
            assert process.num_threads() == 1
            assert process.nice() == min(psutil.Process().nice() + 10, 19), "the server has the cores first"
            group = proc / "autogroup"
            assert not group.exists() or group.read_text().endswith("nice 10\n")
    finally:
        os.close(inheritable)


SERVER = """
import functools
import trio
import trio.testing
from trunkline.actors.core.scripts.errors import ScriptError
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.limits.table import Limits

async def main():
    pool = ScriptPool(Limits(script_cpu_s=0.2))
    async with trio.open_nursery() as nursery:
        await nursery.start(pool.run)
        await pool.call("", 1, owner=b"a")
        nursery.start_soon(functools.partial(pool.call, "for (;;) {}", 1, owner=b"a"))
        await trio.testing.wait_all_tasks_blocked()
        print(*pool.pids, flush=True)

trio.run(main)
"""


def left_behind() -> int:
    """A descriptor of the process that a killed server leaves behind."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        descriptor = os.pidfd_open(int(server.stdout.readline()))
        server.kill()
    return descriptor


async def test_no_process_outlives_a_server_that_is_killed() -> None:
    """The script runs when the server is killed. The process ends with the CPU of its call at the latest."""
    descriptor = left_behind()
    with trio.fail_after(PATIENCE_S):
        await trio.lowlevel.wait_readable(descriptor)
    os.close(descriptor)
