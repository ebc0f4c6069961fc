"""The pages for people: `/`, `/console` and `/docs` with all that they load, the icon, and the OpenAPI document.

They are read and compressed once, from installed files, so no page depends on another server. None needs a token. A
browser keeps them and asks each time whether they are still the same, so nobody sees a page of an older version. Each
is made when it is first asked for, beside the loop: to compress all of them would be a third of a start.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import flask_swagger_ui
import msgspec
import trio

from trunkline.http.calls.entity_tag import tag_matches
from trunkline.http.calls.request import Headers, Response
from trunkline.http.calls.route_table import RouteTable

OPENAPI: Final = "/openapi.json"
STATIC: Final = Path(__file__).parent / "static"
CONSOLE: Final = Path(__file__).parents[1] / "console"
_SWAGGER_UI: Final = Path(flask_swagger_ui.__file__).parent / "dist"
_CONTENT_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".mjs": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".woff2": b"font/woff2",
}
_PACKED: Final = frozenset({".png", ".woff2"})
"""Files of these kinds are compressed already."""

_FILES: Final[Mapping[str, Path]] = {
    "/": STATIC / "root.html",
    "/page.css": STATIC / "page.css",
    "/favicon.svg": STATIC / "favicon.svg",
    "/favicon.ico": STATIC / "favicon.svg",
    "/docs": STATIC / "docs.html",
    "/docs/page.css": STATIC / "docs.css",
    "/docs/start.js": STATIC / "start.js",
    "/docs/swagger-ui.css": _SWAGGER_UI / "swagger-ui.css",
    "/docs/swagger-ui-bundle.js": _SWAGGER_UI / "swagger-ui-bundle.js",
    "/console": CONSOLE / "index.html",
    "/console/": CONSOLE / "index.html",
    **{
        f"/console/{file.relative_to(CONSOLE).as_posix()}": file
        for file in CONSOLE.rglob("*")
        if file.suffix in _CONTENT_TYPES
    },
}
TILES: Final = "/console/map/tiles.json"
PATHS: Final = frozenset({OPENAPI, TILES, *_FILES})

PAGE_POLICY: Final = (
    b"content-security-policy",
    b"; ".join(
        (
            b"default-src 'none'",
            b"script-src 'self'",
            b"connect-src 'self'",
            b"img-src 'self' data:",
            b"style-src 'self' 'unsafe-inline'",
        )
    ),
)


class MapTiles(NamedTuple):
    """Where maps of the console get their tiles: a URL with {z}, {x} and {y}, None for none. What they say of it."""

    url: str | None = None
    attribution: str | None = None

    @property
    def origin(self) -> str:
        """The one other server from which the console may load pictures; empty for none."""
        return "" if self.url is None else "/".join(self.url.split("/")[:3])


def _console_headers(pictures_from: str) -> Headers:
    """The console has the token of a person in its memory, so nothing but its own files may run or be asked there."""
    policy = (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        f"img-src 'self' data: blob: {pictures_from}".rstrip(),
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    )
    return [
        (b"content-security-policy", "; ".join(policy).encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
    ]


_ACCEPTS_GZIP: Final = re.compile(
    rb"(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))\s*(?:[;,]|$)", re.IGNORECASE
)


class Page:
    """A page as it is sent: as it is and, where that is shorter, compressed."""

    __slots__ = ("_content", "_etag", "_headers", "_zipped")

    def __init__(self, content: bytes, headers: Headers, *, zipped: bool) -> None:
        self._content = content
        self._etag = hashlib.sha256(content).hexdigest()[:32]
        self._zipped = gzip.compress(content, mtime=0) if zipped else content
        if len(self._zipped) >= len(content):
            self._zipped = content
        self._headers = [*headers, (b"cache-control", b"no-cache"), (b"x-content-type-options", b"nosniff")]
        if self._zipped is not content:
            self._headers.append((b"vary", b"accept-encoding"))

    def response(self, request: Mapping[bytes, bytes]) -> Response:
        """The response to a request with these headers: 304 if the client has this page already."""
        headers, content, etag = [*self._headers], self._content, self._etag
        if self._zipped is not content and _ACCEPTS_GZIP.search(request.get(b"accept-encoding", b"")):
            content, etag = self._zipped, f"{etag}-gzip"
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"etag", f'"{etag}"'.encode()))
        known = request.get(b"if-none-match")
        if known is not None and tag_matches(known.decode("latin1"), etag):
            return Response(304, headers)
        return Response(200, headers, content)


class Site:
    """All pages by path."""

    def __init__(self, table: RouteTable, version: str, tiles: MapTiles | None = None) -> None:
        self._table = table
        self._tiles = tiles or MapTiles()
        self._version = version
        self._ids: Mapping[str, str] = {}
        self._pages: dict[str, Page] = {}
        self._making = trio.CapacityLimiter(1)

    async def page(self, path: str) -> Page:
        """The page at this path, which is one of `PATHS`."""
        page = self._pages.get(path)
        if page is None:
            page = await trio.to_thread.run_sync(self._made, path, limiter=self._making)
            self._pages[path] = page
        return page

    def _made(self, path: str) -> Page:
        if path == OPENAPI:
            return self._openapi()
        if path == TILES:
            shown = msgspec.json.encode(self._tiles._asdict())
            return Page(shown, [(b"content-type", _CONTENT_TYPES[".json"])], zipped=False)
        return _read(_FILES[path], self._tiles.origin)

    def show_examples(self, ids: Mapping[str, str]) -> None:
        """From now on the OpenAPI document has these ids in its examples, by the names of their parameters."""
        self._ids = ids
        self._pages.pop(OPENAPI, None)

    def _openapi(self) -> Page:
        from trunkline.http.openapi import examples

        shown = _encoded_document(self._table, self._version)
        for name, id in self._ids.items():
            shown = shown.replace(examples.id_of(name).encode(), id.encode())
        return Page(shown, [(b"content-type", _CONTENT_TYPES[".json"])], zipped=True)


@lru_cache(maxsize=2)
def _encoded_document(table: RouteTable, version: str) -> bytes:
    from trunkline.http.openapi.document import (
        document,  # in a thread: it imports all descriptions and examples
    )

    return msgspec.json.encode(document(table, version))


@cache
def _read(file: Path, pictures_from: str) -> Page:
    headers = [(b"content-type", _CONTENT_TYPES[file.suffix])]
    if file.is_relative_to(CONSOLE):
        headers += _console_headers(pictures_from)
    elif file.suffix == ".html":
        headers.append(PAGE_POLICY)
    return Page(file.read_bytes(), headers, zipped=file.suffix not in _PACKED)
