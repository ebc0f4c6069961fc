"""The pages for people: `/`, `/docs` with all that it loads, `/favicon.svg`, and the OpenAPI document.

They are read once, from installed files, so no page depends on another server. None needs a token. The OpenAPI
document takes longer to make than all others together, so it is made when it is first asked for, beside the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import flask_swagger_ui
import msgspec
import trio

from trunkline.http.calls.route_table import RouteTable
from trunkline.http.pages import examples
from trunkline.http.pages.openapi import document

OPENAPI: Final = "/openapi.json"
STATIC: Final = Path(__file__).parent / "static"
_SWAGGER_UI: Final = Path(flask_swagger_ui.__file__).parent / "dist"
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
}
PATHS: Final = frozenset({OPENAPI, *_FILES})
_CONTENT_TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
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


class Page(NamedTuple):
    """A page as it is sent."""

    headers: list[tuple[bytes, bytes]]
    content: bytes


class Site:
    """All pages by path."""

    def __init__(self, table: RouteTable, version: str) -> None:
        self._table = table
        self._version = version
        self._ids: Mapping[str, str] = {}
        self._pages = {path: _read(file) for path, file in _FILES.items()}
        self._making = trio.CapacityLimiter(1)

    async def page(self, path: str) -> Page:
        """The page at this path, which is one of `PATHS`."""
        if path == OPENAPI and path not in self._pages:
            make = trio.to_thread.run_sync
            shown = await make(_encoded_document, self._table, self._version, limiter=self._making)
            for name, id in self._ids.items():
                shown = shown.replace(examples.IDS[name].encode(), id.encode())
            self._pages[path] = Page([(b"content-type", b"application/json")], shown)
        return self._pages[path]

    def show_examples(self, ids: Mapping[str, str]) -> None:
        """From now on the OpenAPI document has these ids in its examples, by their names in `examples.IDS`."""
        self._ids = ids
        self._pages.pop(OPENAPI, None)


@lru_cache(maxsize=2)
def _encoded_document(table: RouteTable, version: str) -> bytes:
    return msgspec.json.encode(document(table, version))


def _read(file: Path) -> Page:
    headers = [(b"content-type", _CONTENT_TYPES[file.suffix])]
    if file.suffix == ".html":
        headers.append(PAGE_POLICY)
    return Page(headers, file.read_bytes())
