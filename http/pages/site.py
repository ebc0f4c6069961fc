"""The pages for people: `/`, `/docs` with all that it loads, `/favicon.svg`, and the OpenAPI document.

They are read once, from installed files, so no page depends on another server. None needs a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import flask_swagger_ui
import msgspec

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
        self._document = msgspec.json.encode(document(table, version))
        self._pages = {path: _read(file) for path, file in _FILES.items()}
        self.show_examples({})

    def page(self, path: str) -> Page:
        """The page at this path, which is one of `PATHS`."""
        return self._pages[path]

    def show_examples(self, ids: Mapping[str, str]) -> None:
        """From now on the OpenAPI document has these ids in its examples, by their names in `examples.IDS`."""
        shown = self._document
        for name, id in ids.items():
            shown = shown.replace(examples.IDS[name].encode(), id.encode())
        self._pages[OPENAPI] = Page([(b"content-type", b"application/json")], shown)


def _read(file: Path) -> Page:
    headers = [(b"content-type", _CONTENT_TYPES[file.suffix])]
    if file.suffix == ".html":
        headers.append(PAGE_POLICY)
    return Page(headers, file.read_bytes())
