"""The access log: one line for each response, the same on both engines.

Owns what a line contains. Does not own where lines go, which is Hypercorn's configuration.

Why the query of a request is left out: it may hold secrets.
"""

from __future__ import annotations

from collections.abc import Callable

from hypercorn.config import Config

from trunkline.http.wire.asgi import Address
from trunkline.http.wire.exchange import Exchange

ACCESS_LOG_FORMAT = '%(h)s "%(m)s %(U)s" %(s)s %(b)s %(D)s'
"""Client, method, path, status, bytes of the body, microseconds, as Hypercorn's own protocols write them."""

LogAccess = Callable[[Exchange, Address, float], None]
"""Called for each response: the exchange, the client, and the seconds from the request to the response."""


def access_log(config: Config) -> LogAccess | None:
    """Writes a line for each response to the configured log; None where none is configured."""
    logger = config.log.access_logger
    if logger is None:
        return None

    def log_access(exchange: Exchange, client: Address, took_s: float) -> None:
        host = f"{client[0]}:{client[1]}" if client else "-"
        values = (host, exchange.method, exchange.path, exchange.status, exchange.sent_bytes, took_s * 1e6)
        logger.info('%s "%s %s" %s %s %d', *values)

    return log_access
