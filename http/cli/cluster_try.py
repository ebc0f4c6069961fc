"""`trunkline cluster try`: three machines and three NATS servers on this one, with the demo, to see what a log is for.

Owns the processes and their directory. Each machine is a server as `trunkline serve` starts it; one that ends is
started again after a while, so that another one has taken its place by then.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import trio

from trunkline.http.hosting.terminal import announce
from trunkline.limits.errors import SettingsError

MACHINES: Final = ("a", "b", "c")
SERVERS: Final = ("n1", "n2", "n3")
AGAIN_S: Final = 10.0
"""After so long a machine that has ended is started again."""
STOP_S: Final = 20.0
"""How long machines may take to drain."""
LINE_BYTES_MAX: Final = 65_536
SERVES: Final = (b"Trunkline serves", b"Standby")
"""What a machine prints when clients can use it."""
_SECRETS: Final = ("secret", "encryption-keys")


class Trial:
    """The processes in a directory. Clients reach the machines at `port` and the two ports behind it."""

    def __init__(self, directory: Path, port: int, program: str) -> None:
        """`program` is that of a NATS server."""
        self._directory = directory.absolute()
        self._port = port
        self._program = program
        self._environment: dict[str, str] = {}
        self._ids: dict[str, int] = {}

    async def run(self) -> None:
        """Run until SIGINT or SIGTERM. Raises `SettingsError` if a machine cannot be started."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with trio.open_nursery() as servers:
                await self._start_log(servers)
                async with trio.open_nursery() as machines:
                    await machines.start(self._keep, MACHINES[0])
                    for name in MACHINES[1:]:
                        self._copy_secrets(name)
                        await machines.start(self._keep, name)
                    self._explain()
                    await anext(signals)
                    machines.cancel_scope.cancel()
                servers.cancel_scope.cancel()

    def _explain(self) -> None:
        announce("Three machines serve one set of data, which is in the log of three NATS servers:")
        for name in MACHINES:
            announce(f"  {name}: {self._url(name)}   console: {self._url(name)}/console")
        announce(f"Look at them: trunkline cluster status --data {self._directory / MACHINES[1]}")
        first = MACHINES[0]
        announce(
            f"Lose {first}, which serves: kill -9 -- -{self._ids[first]}   (it is back in {AGAIN_S:.0f} s)"
        )

    def _url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._port + MACHINES.index(name)}"

    # The log.

    async def _start_log(self, nursery: trio.Nursery) -> None:
        ports = _free_ports(2 * len(SERVERS))
        clients, routes = ports[: len(SERVERS)], ports[len(SERVERS) :]
        for at, name in enumerate(SERVERS):
            folder = self._directory / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes if port != routes[at])
            config = self._directory / f"{name}.conf"
            config.write_text(
                f'server_name: {name}\nlisten: "127.0.0.1:{clients[at]}"\n'
                f'cluster {{ name: try, listen: "127.0.0.1:{routes[at]}", routes: [{others}] }}\n'
                f'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
            )
            await nursery.start(self._run_server, name, [self._program, "-c", str(config)])
        self._environment = {
            **os.environ,
            "TRUNKLINE_CLUSTER_NATS": " ".join(f"nats://127.0.0.1:{port}" for port in clients),
            "TRUNKLINE_CLUSTER_NAME": "try",
            "TRUNKLINE_BLOBS": str(self._directory / "contents"),
            "TRUNKLINE_MQTT_PORT": "0",
            # All of them share one machine, and hold each other up.
            "TRUNKLINE_CLUSTER_SILENCE_MS": "3000",
        }

    async def _run_server(
        self, name: str, command: list[str], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with (self._directory / f"{name}.log").open("ab") as log:
            process = await _started(command, os.environ, stdout=log.fileno(), stderr=log.fileno())
        task_status.started()
        await _until_ended(process)

    # The machines.

    async def _keep(self, name: str, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run a machine, and start it again whenever it ends. It has started when clients can use it."""
        command = [sys.executable, "-m", "trunkline.http.cli.main", "serve", "--demo"]
        command += ["--data", str(self._directory / name), "--port", str(self._port + MACHINES.index(name))]
        environment = {**self._environment, "TRUNKLINE_CLUSTER_NODE": name}
        was_ready = False
        while True:
            with (self._directory / f"{name}.log").open("ab") as log:
                process = await _started(command, environment, stdout=subprocess.PIPE, stderr=log.fileno())
            self._ids[name] = process.pid
            ready = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_show, name, process, ready)
                nursery.start_soon(_until_ended, process, nursery.cancel_scope)
                await ready.wait()
                if not was_ready:
                    task_status.started()
                was_ready = True
                await trio.sleep_forever()
            if not was_ready:
                log = self._directory / f"{name}.log"
                raise SettingsError(name, f"cannot be started: {await _last_line(log)}", f"read {log}")
            announce(f"{name} has ended; it is started again in {AGAIN_S:.0f} s.")
            await trio.sleep(AGAIN_S)

    def _copy_secrets(self, name: str) -> None:
        """Give a machine the secrets of the first one, as an operator does."""
        (self._directory / name).mkdir(mode=0o700, exist_ok=True)
        for secret in _SECRETS:
            shutil.copy(self._directory / MACHINES[0] / secret, self._directory / name / secret)


def check_place(directory: Path) -> None:
    """Raise `SettingsError` for a directory that holds other things than an earlier trial."""
    if directory.is_dir() and any(directory.iterdir()) and not (directory / SERVERS[0]).is_dir():
        raise SettingsError(str(directory), "is not empty, and holds no trial", "name an empty directory")


async def _last_line(file: Path) -> str:
    """The last line of a log, which tells why a program has ended."""
    lines = (await trio.Path(file).read_text("utf-8", "replace")).split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "it says nothing")
    return last.removeprefix("trunkline: ").rstrip(".")


async def _started(
    command: list[str], environment: Mapping[str, str], *, stdout: int, stderr: int
) -> trio.Process:
    """Start a process with a group of its own, which a terminal sends no signals, and which can be killed whole."""
    return await trio.lowlevel.open_process(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


async def _until_ended(process: trio.Process, scope: trio.CancelScope | None = None) -> None:
    """Wait until a process has ended, then cancel the scope. If this is cancelled, the process is stopped."""
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_S):
                await process.wait()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if scope is not None:
        scope.cancel()


async def _show(name: str, process: trio.Process, ready: trio.Event) -> None:
    """Print what a machine prints."""
    assert process.stdout is not None
    rest = b""
    async for piece in process.stdout:
        *lines, rest = (rest + bytes(piece)).split(b"\n")
        for line in lines:
            announce(f"{name}: {line.decode('utf-8', 'replace')}")
            if line.startswith(SERVES):
                ready.set()
        rest = rest[-LINE_BYTES_MAX:]


def nats_server() -> str | None:
    """The program of a NATS server: that of the extra, or another one on the path; None if there is none."""
    own = Path(sys.executable).with_name("nats-server")
    return str(own) if own.exists() else shutil.which("nats-server")


def _free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody uses."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
