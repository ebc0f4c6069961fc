"""The connections on which HTTP is spoken: what all of one engine have in common, and what each has of its own.

Owns nothing but how they are made. What happens on them is in `http1.py` and `http2.py`, how long they are served in
`engine.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from trunkline.http.wire.access_log import LogAccess
from trunkline.http.wire.asgi import Address, Application
from trunkline.http.wire.fast_path import FastPath
from trunkline.http.wire.http1 import Http1Connection
from trunkline.http.wire.http2 import Http2Connection
from trunkline.http.wire.refusal import Refuse
from trunkline.http.wire.request_heads import RequestHeads
from trunkline.http.wire.request_parser import Bounds
from trunkline.http.wire.transport import Transport


class Ends(NamedTuple):
    """Both ends of a connection, its scheme, and the state of its requests."""

    client: Address
    server: Address
    scheme: str
    state: dict[str, Any] | None


class HttpConnections:
    """Makes the connections of one engine."""

    def __init__(
        self,
        app: Application,
        bounds: Bounds,
        refuse: Refuse,
        heads: RequestHeads,
        *,
        fast_path: FastPath | None,
        log_access: LogAccess | None,
        http2_prior_knowledge: bool,
    ) -> None:
        """The parameters are those of the engine."""
        self._app = app
        self._bounds = bounds
        self._refuse = refuse
        self._heads = heads
        self._fast_path = fast_path
        self._log_access = log_access
        self._http2_prior_knowledge = http2_prior_knowledge

    def http1(self, transport: Transport, ends: Ends, *, draining: bool) -> Http1Connection:
        """A connection that begins with HTTP/1.1."""
        return Http1Connection(
            transport,
            self._app,
            self._bounds,
            self._refuse,
            self._heads,
            ends.client,
            ends.server,
            fast_path=self._fast_path,
            scheme=ends.scheme,
            http2=self._http2_prior_knowledge,
            log_access=self._log_access,
            state=ends.state,
            draining=draining,
        )

    def http2(self, transport: Transport, ends: Ends, first: bytes, *, draining: bool) -> Http2Connection:
        """A connection on which HTTP/2 is spoken; `first` is what has come of it."""
        return Http2Connection(
            transport,
            self._app,
            self._bounds,
            self._refuse,
            ends.client,
            ends.server,
            scheme=ends.scheme,
            first=first,
            log_access=self._log_access,
            state=ends.state,
            draining=draining,
        )
