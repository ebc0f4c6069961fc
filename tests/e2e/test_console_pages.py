"""The console as it is served: every installed file, with a strict policy, compressed, and kept by clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Server
from trunkline.http.site import site

FILES = {
    f"/console/{file.relative_to(site.CONSOLE).as_posix()}": file
    for file in site.CONSOLE.rglob("*")
    if file.is_file() and not file.name.endswith(".LICENSE.txt")
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
PREACT = "/console/vendor/preact.mjs"


async def fetched(server: Server, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    """The response to somebody without a token, whose client accepts no coding unless `headers` say so."""
    async with server.client("") as client:
        given = {"accept-encoding": "identity"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await client.request(method, path, headers=given)


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_every_file_is_served(engine: str, start_server: Callable[..., Any]) -> None:
    async with start_server(engine=engine) as server:
        for path, file in {**FILES, "/console": FILES["/console/index.html"]}.items():
            response = await fetched(server, path)
            assert response.status_code == 200, path
            assert response.content == file.read_bytes(), path
            assert response.headers["content-type"] == TYPES[file.suffix], path
            assert response.headers["content-security-policy"] == POLICY
            assert response.headers["referrer-policy"] == "no-referrer"
            assert response.headers["cross-origin-opener-policy"] == "same-origin"
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-cache"
            head = await fetched(server, path, "HEAD")
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(response.content))
            assert head.headers["etag"] == response.headers["etag"]
        assert (await fetched(server, "/console/")).content == FILES["/console/index.html"].read_bytes()


async def test_what_is_no_file_of_the_console_is_not_found(server: Server) -> None:
    for path in (
        "/console/no.js",
        "/console/vendor",
        "/console/../site.py",
        "/console/%2e%2e/site.py",
        "/console/vendor/preact.LICENSE.txt",
    ):
        response = await fetched(server, path)
        assert response.status_code == 404, path
        assert set(response.json()) == {"type", "message"}
    assert (await fetched(server, "/console", "POST")).status_code == 405


@pytest.mark.parametrize("engine", ["fast", "stock"])
async def test_a_client_keeps_what_it_has(engine: str, start_server: Callable[..., Any]) -> None:
    async with start_server(engine=engine) as server:
        for path in (PREACT, "/console", "/", "/docs", "/docs/swagger-ui.css", "/openapi.json"):
            etag = (await fetched(server, path)).headers["etag"]
            again = await fetched(server, path, if_none_match=etag)
            assert (again.status_code, again.content) == (304, b""), path
            assert again.headers["etag"] == etag
            assert again.headers["cache-control"] == "no-cache"
            assert (await fetched(server, path, if_none_match=f'"other", W/{etag}')).status_code == 304
            assert (await fetched(server, path, if_none_match='"other"')).status_code == 200


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip;q=0.5, br", "GZIP ; q=1"])
async def test_files_are_compressed_for_those_who_accept_it(server: Server, accepted: str) -> None:
    plain = await fetched(server, PREACT)
    response = await fetched(server, PREACT, accept_encoding=accepted)
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == plain.content
    assert response.num_bytes_downloaded < len(plain.content) / 2
    for each in (plain, response):
        assert "accept-encoding" in each.headers["vary"].lower()
    # A strong tag names one sequence of bytes.
    assert response.headers["etag"] != plain.headers["etag"]
    tag = response.headers["etag"]
    assert (await fetched(server, PREACT, if_none_match=tag, accept_encoding="gzip")).status_code == 304


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "br, gzip; q=0.000 , deflate", "xgzip"])
async def test_files_are_not_compressed_for_others(server: Server, accepted: str) -> None:
    response = await fetched(server, PREACT, accept_encoding=accepted)
    assert "content-encoding" not in response.headers
    assert response.content == FILES[PREACT].read_bytes()


def named(text: str) -> list[str]:
    """What a page of the console makes a browser load."""
    return re.findall(r'(?:src|href)="([^"]*)"', text)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """It names absolute paths, because it is served at /console, without a slash at the end."""
    text = FILES["/console/index.html"].read_text(encoding="utf-8")
    assert "/console/main.js" in named(text)
    assert set(named(text)) <= site.PATHS
    assert not re.findall(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=", text)


SCRIPTS = {path: file for path, file in FILES.items() if path.endswith((".js", ".mjs"))}


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_module_imports_files_that_are_there(path: str) -> None:
    """No bare import: a page with this policy can have no import map."""
    folder = Path(path).parent
    text = SCRIPTS[path].read_text(encoding="utf-8")
    for target in re.findall(
        r'(?m)(?:^import |^(?:import|export) .* from |^\} from |\bimport\()"([^"]+)"', text
    ):
        resolved = target if target.startswith("/") else str(Path("/", folder, target).resolve())
        assert resolved in site.PATHS, f"{path} imports {target}"


async def test_the_first_page_leads_to_the_console(server: Server) -> None:
    assert '<a href="/console">' in (await fetched(server, "/")).text
