"""Serving a data directory: open it, listen, drain at SIGTERM.

The order of an end: no new connections, streams are closed, what waits is committed, calls in flight are
answered within `drain_s`, exit 0.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve

from trunkline.actors import boot
from trunkline.actors.clock import Clock
from trunkline.actors.system import System
from trunkline.http.app import create_app
from trunkline.http.auth import Tokens
from trunkline.http.control import serve_control
from trunkline.http.dispatch import Dispatcher
from trunkline.http.engine import Engine
from trunkline.http.errors import refusal
from trunkline.http.hot import HotDoor
from trunkline.http.routes import TABLE
from trunkline.limits.settings import Settings

_log = structlog.get_logger("trunkline.serve")


class Serving(NamedTuple):
    """A server that is ready: where it listens, and the account made on a first start."""

    url: str
    first_user: boot.FirstUser | None
    dispatcher: Dispatcher


async def serve(
    settings: Settings,
    *,
    ready: Callable[[Serving], Awaitable[None]] | None = None,
    shutdown: Callable[[], Awaitable[None]] | None = None,
    clock: Clock | None = None,
    task_status: trio.TaskStatus[Serving] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until `shutdown` returns (default: SIGTERM or SIGINT), then drain.

    `ready` runs beside the server once it listens. `clock` is the seam to time (default: the machine's).
    Raises `StoreError` where the data directory can not be opened and `OSError` where the address can not be
    bound.
    """
    with boot.opened(settings, clock) as system:
        async with boot.running(system), trio.open_nursery() as nursery:
            first_user = await boot.ensure_first_user(system, settings)
            dispatcher = make_dispatcher(system, settings)
            await nursery.start(serve_control, system)
            trigger = partial(_until, shutdown or _signalled, system)
            listen = partial(_listen, nursery, dispatcher, settings, trigger)
            serving = Serving(await nursery.start(listen), first_user, dispatcher)
            _log.info("listening", url=serving.url, data_dir=settings.data_dir)
            if settings.limits == settings.limits.lifted():
                _log.warning("throttles are lifted: this is for load tests, never for an open network")
            task_status.started(serving)
            if ready is not None:
                nursery.start_soon(ready, serving)
    _log.info("stopped")


async def _listen(
    nursery: trio.Nursery,
    dispatcher: Dispatcher,
    settings: Settings,
    trigger: Callable[[], Awaitable[None]],
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run Hypercorn until the trigger, then end everything that stands beside it."""
    cold = create_app(dispatcher, trust_forwarded_for=settings.trust_forwarded_for)
    app: Any = HotDoor(dispatcher, cold, trust_forwarded_for=settings.trust_forwarded_for)
    config = _config(settings)
    async with trio.open_nursery() as listening:
        if settings.engine == "stock":
            run = partial(hypercorn_serve, app, config, shutdown_trigger=trigger, mode="asgi")
        else:
            run = partial(Engine(app, config, settings.limits, refusal).serve, trigger)
        # `start` hands over the bound addresses; the nursery then waits for the server to end.
        (bind,) = await listening.start(run)
        task_status.started(bind)
    nursery.cancel_scope.cancel()


def make_dispatcher(system: System, settings: Settings) -> Dispatcher:
    """The dispatcher of a system, with the secret of its data directory."""
    tokens = Tokens(system, system.store.directory.secret(), TABLE)
    return Dispatcher(system, tokens, TABLE, token_ttl_s=settings.token_ttl_s)


def _config(settings: Settings) -> Config:
    limits = settings.limits
    config = Config()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    config.bind = [f"{host}:{settings.port}"]
    config.backlog = limits.backlog_length_max
    config.graceful_timeout = limits.drain_s
    config.keep_alive_timeout = limits.connection_idle_s
    # A busy device keeps its connection: the stock bound would close it after a thousand calls.
    config.keep_alive_max_requests = sys.maxsize
    config.h11_max_incomplete_size = limits.header_bytes_max
    config.include_server_header = False
    config.errorlog = logging.getLogger("hypercorn.error")
    config.accesslog = logging.getLogger("hypercorn.access") if settings.access_log else None
    config.access_log_format = '%(h)s "%(m)s %(U)s" %(s)s %(b)s %(D)s'
    return config


async def _until(shutdown: Callable[[], Awaitable[None]], system: System) -> None:
    await shutdown()
    _log.info("draining", streams=len(system.streams))
    system.drain()


async def _signalled() -> None:
    """Return at the first SIGTERM or SIGINT."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            return


def configure_logging(settings: Settings) -> None:
    """Structured lines to standard error, ours and those of the libraries. No line holds a token or a payload."""
    level = getattr(logging, settings.log_level.upper())
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatted: list[Any] = [structlog.processors.format_exc_info] if settings.log_format == "json" else []
    structlog.configure(
        processors=[*shared, *formatted, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger("hypercorn.access").setLevel(logging.INFO)
