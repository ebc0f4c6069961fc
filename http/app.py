"""The Quart-Trio application: it connects Quart to the dispatcher and serves the pages for operators.

Quart parses a request and sends the response; the dispatcher (`calls/dispatch.py`) builds the response. The application
also serves `/healthz`, `/readyz` and the pages of `site/site.py`, which need no token, and `/metrics`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import msgspec
from quart import Response as QuartResponse
from quart import request
from quart.routing import QuartMap
from quart.wrappers import BaseRequestWebsocket
from quart.wrappers.response import ResponseBody
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, RequestTimeout
from werkzeug.exceptions import MethodNotAllowed as NoSuchMethod
from werkzeug.exceptions import NotFound as NoSuchPath
from werkzeug.routing import MapAdapter, Rule

from trunkline.actors.core.runtime.late_imports import load
from trunkline.actors.core.runtime.peers import process_name
from trunkline.actors.core.values.errors import DomainError, Invalid
from trunkline.actors.maintenance.owner_traffic import TRAFFIC, own_traffic
from trunkline.actors.presentation.experience.domain_names import DomainNames
from trunkline.actors.presentation.experience.sites import Sites
from trunkline.http.calls.asgi_request import request_of
from trunkline.http.calls.dispatch import Dispatcher
from trunkline.http.calls.errors import JSON, MethodNotAllowed, body_too_large, body_too_slow, error_response
from trunkline.http.calls.fast_path import FastPath
from trunkline.http.calls.request import Headers, Response, Stream
from trunkline.http.calls.streamed_calls import StreamedCalls
from trunkline.http.calls.upgraded_calls import UpgradedCalls
from trunkline.http.experiences.layer import ExperienceHosts, ExperienceLayer
from trunkline.http.metrics.metrics_access import check_reader
from trunkline.http.resources.platform.server import LONG_TURNS, own_turns
from trunkline.http.site import site
from trunkline.http.site.site import Site
from trunkline.http.version import VERSION
from trunkline.http.wire.asgi import Application
from trunkline.http.wire.connection_counts import ConnectionCounts
from trunkline.http.wire.cors import CrossOrigin
from trunkline.limits.settings import Settings

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_OPERATOR_PAGES = frozenset({"/healthz", "/readyz", "/metrics"})
_PAGES = site.PATHS | _OPERATOR_PAGES
"""The paths outside the API. They take only GET and HEAD."""


_OPENED = "trunkline.opened"
"""The key of the ASGI scope with the streams that the request has opened."""


class _Routes(QuartMap):
    """The routes of Quart, without a search for the one that nearly all requests have.

    Werkzeug's search costs more than the dispatcher's own, and leaves a reference cycle for each request.
    """

    api: Rule
    """Set before the first request."""

    def bind_to_request(
        self,
        request: BaseRequestWebsocket,
        subdomain: str | None,  # noqa: ARG002 - Quart's signature
        server_name: str | None,  # noqa: ARG002
    ) -> MapAdapter:
        return _RouteOfRequest(self, "", "/", "", request.scheme, request.path, request.method, "")


class _RouteOfRequest(MapAdapter):
    """Finds the route of one request."""

    def match(self, *arguments: Any, **options: Any) -> Any:
        path = self.path_info
        is_usual = path not in _OPERATOR_PAGES and "//" not in path and "\n" not in path
        if is_usual and self.default_method in _METHODS:
            return cast("_Routes", self.map).api, {"path": path[1:]}
        return super().match(*arguments, **options)


class _App(QuartTrio):
    url_map_class = _Routes
    url_map: _Routes


class StreamBody(ResponseBody):
    """A `Stream` as a body of Quart. `ClosingStreams` closes it: a body that is never entered is never left."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def __aenter__(self) -> AsyncIterator[bytes]:
        return self

    async def __aexit__(self, exc_type: type, exc_value: BaseException, tb: TracebackType) -> None:
        pass

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._stream.next()
        if piece is None:
            raise StopAsyncIteration
        return piece


class ClosingStreams:
    """An ASGI layer that closes the stream of a response when its request ends, however it ends.

    A client may leave before the head of the response is sent. Quart then never enters the body.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        opened: list[Stream] = []
        try:
            await self._app({**scope, _OPENED: opened}, receive, send)
        finally:
            for stream in opened:
                stream.close()


class Layers(NamedTuple):
    """What a server serves: the outermost layer, the fast path if there is one, and the hosts of experiences."""

    app: Application
    fast_path: FastPath | None
    hosts: ExperienceHosts


def layered(
    dispatcher: Dispatcher, pages: Site, settings: Settings, connections: Callable[[], ConnectionCounts]
) -> Layers:
    """The application with the layers that the settings put around it."""
    system, trusts = dispatcher.system, settings.trust_forwarded_for
    quart_app = create_app(
        dispatcher,
        pages,
        trust_forwarded_for=trusts,
        metrics_for=settings.metrics_for,
        connections=connections,
    )
    sites = system.component(Sites)
    hosts = ExperienceHosts(sites, settings.experience_suffix, system.component(DomainNames).own_host)
    fast_path = None
    if settings.hot_rows:
        fast_path = FastPath(
            dispatcher,
            quart_app,
            trust_forwarded_for=trusts,
            cross_origin=settings.cors_origins is not None,
            is_foreign=hosts.has,
        )
    app: Any = fast_path or quart_app
    if settings.cors_origins is not None:
        app = CrossOrigin(app, settings.cors_origins.split())
    return Layers(ExperienceLayer(app, system, hosts, trust_forwarded=trusts), fast_path, hosts)


def create_app(
    dispatcher: Dispatcher,
    pages: Site,
    *,
    trust_forwarded_for: bool = False,
    metrics_for: str = "local",
    connections: Callable[[], ConnectionCounts] = ConnectionCounts,
) -> QuartTrio:
    """The application that serves `dispatcher` and `pages`. `connections` returns the counters for the metrics."""
    # Nothing here uses these two paths, but without them Quart searches for them, and fails for a package without an
    # __init__.py that is in two places.
    here = str(Path(__file__).parent)
    app = _App("trunkline", static_folder=None, root_path=here, instance_path=here)
    system = dispatcher.system
    app.config["MAX_CONTENT_LENGTH"] = system.limits.body_bytes_max
    app.config["BODY_TIMEOUT"] = system.limits.body_timeout_s
    app.config["RESPONSE_TIMEOUT"] = None

    @app.route("/", defaults={"path": ""}, methods=_METHODS)
    @app.route("/<path:path>", methods=_METHODS)
    async def api(path: str) -> QuartResponse:
        # That of the scope is not decoded a second time.
        path = request.scope["path"]
        if path in site.PATHS and request.method in ("GET", "HEAD"):
            page = await pages.page(path)
            return _quart(page.response(dict(request.scope["headers"])))
        if path in _PAGES:
            refusal = MethodNotAllowed(
                f"{request.method} is not a method of this path; it takes GET.", "GET, HEAD"
            )
            return _quart(Response(*error_response(refusal)))
        return await dispatch(await request.get_data())

    async def dispatch(body: Any) -> QuartResponse:
        scope = cast("dict[str, Any]", request.scope)
        response = await dispatcher.handle(request_of(scope, body, trust_forwarded_for=trust_forwarded_for))
        if response.stream is not None:
            scope[_OPENED].append(response.stream)
        return _quart(response)

    @app.errorhandler(HTTPException)
    async def handle_http_error(error: HTTPException) -> QuartResponse:
        if isinstance(error, NoSuchMethod | NoSuchPath):
            # A method that no route has, or a path with a line break: the dispatcher answers.
            return await dispatch(b"")
        return _quart(Response(*_http_error(error, system.limits.body_bytes_max)))

    app.url_map.api = next(app.url_map.iter_rules("api"))
    _operator_pages(app, dispatcher, connections, metrics_for)
    asgi_app: Application = StreamedCalls(app.asgi_app, dispatcher, trust_forwarded_for=trust_forwarded_for)
    asgi_app = UpgradedCalls(ClosingStreams(asgi_app), dispatcher, trust_forwarded_for=trust_forwarded_for)
    app.asgi_app = asgi_app  # type: ignore[method-assign]
    return app


def _http_error(error: HTTPException, body_bytes_max: int) -> tuple[int, Headers, bytes]:
    """An error that Quart raises itself, in the same form as all errors."""
    if isinstance(error, RequestEntityTooLarge):
        return body_too_large(body_bytes_max)
    if isinstance(error, RequestTimeout):
        return body_too_slow()
    return error_response(Invalid(f"The request cannot be read: {error.name}."))


def _quart(response: Response) -> QuartResponse:
    body = response.body if response.stream is None else StreamBody(response.stream)
    quart_response = QuartResponse(body, status=response.status, content_type=None)
    headers = quart_response.headers
    del headers["content-type"]
    for name, value in response.headers:
        if name == b"content-length":
            del headers["content-length"]  # that of a stream, or of the response to GET
        headers.add(name.decode("latin1"), value.decode("latin1"))
    if response.status == 304:
        # Quart would send the length of the empty body, not that of the response to GET.
        del headers["content-length"]
    if response.stream is not None:
        quart_response.timeout = None
    return quart_response


def _operator_pages(
    app: QuartTrio, dispatcher: Dispatcher, connections: Callable[[], ConnectionCounts], metrics_for: str
) -> None:
    system = dispatcher.system

    @app.get("/healthz")
    async def healthz() -> QuartResponse:
        return _quart(Response(200, [JSON], b'{"status":"alive"}'))

    @app.get("/readyz")
    async def readyz() -> QuartResponse:
        if system.draining:
            return _quart(Response(503, [JSON], b'{"status":"draining"}'))
        unreachable = [] if system.peers is None else system.peers.unreachable()
        if unreachable:
            said = {"status": "incomplete", "partitions": [process_name(number) for number in unreachable]}
            return _quart(Response(503, [JSON], msgspec.json.encode(said)))
        if not system.journal.is_current():
            return _quart(Response(503, [JSON], b'{"status":"waiting"}'))
        return _quart(Response(200, [JSON], b'{"status":"ready"}'))

    @app.get("/metrics")
    async def metrics() -> QuartResponse:
        try:
            check_reader(dispatcher, request.scope, metrics_for)
        except DomainError as refusal:
            return _quart(Response(*error_response(refusal)))
        await load("trunkline.http.metrics.exposition")
        from trunkline.http.metrics.exposition import exposition

        text, content_type = await exposition(dispatcher, connections(), VERSION)
        return _quart(Response(200, [(b"content-type", content_type.encode())], text))

    async def tell_metrics() -> Any:
        await load("trunkline.http.metrics.exposition")
        from trunkline.http.metrics.exposition import own_metrics

        return own_metrics(dispatcher, connections(), VERSION)

    system.tells["metrics"] = tell_metrics
    system.tells[LONG_TURNS] = partial(own_turns, system)
    system.tells[TRAFFIC] = partial(own_traffic, system)
