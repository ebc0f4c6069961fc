"""What a server logs, and how: structured lines on standard error, and the access log.

Owns the form of the lines. No line has a token or a payload.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import structlog

from trunkline.http.hosting.terminal import LossyStderr
from trunkline.http.wire.access_log import LogAccess, access_log
from trunkline.http.wire.request_context import add_request_id
from trunkline.limits.settings import Settings


def access_log_of(settings: Settings) -> LogAccess | None:
    if not settings.access_log:
        return None
    # It is its own setting, so `log_level` does not apply to it.
    wrapper = structlog.make_filtering_bound_logger(logging.INFO)
    logger = structlog.wrap_logger(structlog.PrintLogger(_log_output()), wrapper_class=wrapper)
    return access_log(logger, trust_forwarded_for=settings.trust_forwarded_for)


def _log_output() -> Any:
    """A server does not stop because its log cannot be written."""
    return LossyStderr()


def configure_logging(settings: Settings, process: str = "") -> None:
    """Write structured log lines to standard error, also those of libraries. No line has a token or a payload.

    `process` is the name of this one, where the server has several; each line has it then.
    """
    level = getattr(logging, settings.log_level.upper())
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default formatter prints local variables, and those may be passwords and tokens.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        add_request_id,
        *([partial(_add_process, process)] if process else []),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatted: list[Any] = [structlog.processors.format_exc_info] if settings.log_format == "json" else []
    output = _log_output()
    structlog.configure(
        processors=[*shared, *formatted, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))


def _add_process(
    name: str, _logger: Any, _level: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    event["process"] = name
    return event
