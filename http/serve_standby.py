"""Serving with a log: wait as a standby until this machine owns the data, then serve them.

A machine that does not own the data listens on nothing: a client whose address fails tries that of another machine. One
that does not own them any more ends with a sentence and exit code 1, and is a standby again when it is started again.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
import trio

from trunkline.actors.maintenance.standby import owned
from trunkline.http import systemd
from trunkline.http.serve import RunningServer, serve
from trunkline.limits.settings import Settings

_log = structlog.get_logger("trunkline.serve")


async def serve_with_log(
    settings: Settings, ready: Callable[[RunningServer], Awaitable[None]], **options: Any
) -> None:
    """Serve until SIGTERM or SIGINT, as `serve` with these options, as soon as this machine owns the data.

    Raises `StoreError` and `SettingsError`, with sentences for the operator.
    """
    url = settings.public_url or f"http://{settings.host}:{settings.port}"
    # The pages were checked when the standby was started.
    checked = dataclasses.replace(settings, limits=dataclasses.replace(settings.limits, start_check_s=0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_stop_at_signal, nursery.cancel_scope)
        nursery.start_soon(systemd.feed_watchdog)
        systemd.notify("READY=1", f"STATUS=Standby {settings.cluster_node} of {settings.cluster_name}")
        _log.info("standby", node=settings.cluster_node, log=settings.cluster_name)
        async with owned(settings, url) as journal:
            await serve(checked, ready=ready, journal=journal, **options)
        nursery.cancel_scope.cancel()


async def _stop_at_signal(waiting: trio.CancelScope) -> None:
    """End a standby at a signal; a server that serves has its own receiver, which drains."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            waiting.cancel()
