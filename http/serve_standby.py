"""Serving with a log: stand by until this machine owns the data, then serve them.

A machine that stands by passes its clients on to the one that serves (`processes/machine_port.py`). A process that does
not own the data any more ends with a sentence and exit code 1; its supervisor starts it again, and it stands by.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import trio

from trunkline.actors.core.values.store_partitions import partition_directory
from trunkline.actors.maintenance.machine import Machine
from trunkline.actors.maintenance.standby import owned
from trunkline.http.control_socket import run_standby_command, serve_control
from trunkline.http.processes.machine_port import MachinePort
from trunkline.limits.settings import Settings


async def serve_with_log(
    settings: Settings,
    own: Callable[..., Awaitable[None]],
    signals: AsyncIterator[int],
    stands_by: Callable[[], Awaitable[None]],
    partition: int = 0,
) -> None:
    """Serve a partition until SIGTERM. `stands_by` is called when this machine follows, `own` when it owns the data, to
    serve them.

    Raises `StoreError`, `SettingsError` and `OSError`, with sentences for the operator.
    """
    # The pages are checked when the standby starts.
    checked = dataclasses.replace(settings, limits=dataclasses.replace(settings.limits, start_check_s=0))
    directory = partition_directory(Path(settings.data_dir), partition)
    with closing(MachinePort.bound(settings, partition)) as port:

        async def stand_by(machine: Machine) -> None:
            async with trio.open_nursery() as standing:
                standing.start_soon(port.pass_on, machine)
                run = partial(run_standby_command, machine.status, machine.owner_name)
                await standing.start(serve_control, directory, run)
                await machine.follows.wait()
                await stands_by()

        async def stop_at_signal() -> None:
            with waiting:
                async for number in signals:
                    if number == signal.SIGTERM:
                        nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            waiting = trio.CancelScope()
            nursery.start_soon(stop_at_signal)
            async with owned(settings, port.address, stand_by, port.fetch, partition) as machine:
                if not partition:
                    machine.invite = port.invite
                nursery.start_soon(port.serve, machine)
                async with trio.open_nursery() as serving:
                    await serving.start(partial(own, checked, machine=machine))
                    waiting.cancel()  # who serves follows the signals
            nursery.cancel_scope.cancel()
