"""Pages of other origins: which of them a browser lets call the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

StartServer = Callable[..., Any]

PAGE = "https://app.example.com"
OTHER = "https://other.example.com"


async def test_a_preflight_tells_an_allowed_page_what_it_may_send(start_server: StartServer) -> None:
    asks = {"Origin": PAGE, "Access-Control-Request-Method": "PATCH"}
    origins = f"{PAGE} http://localhost:5173"
    async with start_server(cors_origins=origins) as server, server.client(token="") as client:
        answer = await client.request("OPTIONS", "/applications", headers=asks)
        refused = await client.request("OPTIONS", "/applications", headers={**asks, "Origin": OTHER})
        plain = await client.request("OPTIONS", "/applications", headers={"Origin": PAGE})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "PATCH" in answer.headers["access-control-allow-methods"]
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in refused.headers
    assert plain.status_code == 405  # an OPTIONS request that is no preflight is an ordinary request


async def test_every_response_to_an_allowed_page_can_be_read(start_server: StartServer) -> None:
    page = {"Origin": PAGE}
    async with start_server(cors_origins=PAGE) as server, server.client() as client:
        device = await server.device(await server.application())
        # The same request three times: repeated calls take the fast path if nothing keeps them from it.
        stored = [
            await client.post(f"{device}/state", json={"data": {"temp": 1}}, headers=page) for _ in range(3)
        ]
        missing = await client.get("/applications/0123456789abcdef01234567", headers=page)
        other = await client.get(device, headers={"Origin": OTHER})
        direct = await client.get(device)
        async with client.stream("GET", f"{device}/commandStream", headers=page) as stream:
            streamed = stream.headers["access-control-allow-origin"]
    for answer in (*stored, missing):
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "RateLimit" in answer.headers["access-control-expose-headers"]
        assert answer.headers["vary"] == "Origin"
    assert stored[0].headers["ratelimit"]
    assert missing.status_code == 404
    assert streamed == PAGE
    for answer in (other, direct):
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


async def test_pages_of_all_origins_read_public_files_whatever_is_allowed(start_server: StartServer) -> None:
    for settings in ({}, {"cors_origins": PAGE}, {"cors_origins": "*"}):
        async with start_server(**settings) as server, server.client() as client:
            application = await server.application()
            form = {"file": ("a.json", b"{}", "application/json")}
            made = await client.post(
                f"{application}/files", json={"name": "a.json", "type": "file", "fileSize": 2}
            )
            id = made.json()["id"]
            done = await client.post(f"{application}/file/{id}/upload", files=form)
            assert done.is_success, done.text
            url = f"/files/{application.rpartition('/')[2]}/a.json"
            for origin in (PAGE, OTHER):
                answer = await client.get(url, headers={"Origin": origin})
                assert (answer.status_code, answer.content) == (200, b"{}")
                assert answer.headers.get_list("access-control-allow-origin") == ["*"]


async def test_all_origins_may_be_allowed_and_none_are_by_default(start_server: StartServer) -> None:
    for settings, expected in (({"cors_origins": "*"}, "*"), ({}, None)):
        async with start_server(**settings) as server, server.client() as client:
            answer = await client.get("/applications", headers={"Origin": OTHER})
        assert answer.status_code == 200
        assert answer.headers.get("access-control-allow-origin") == expected
        assert "vary" not in answer.headers


@pytest.mark.parametrize(
    "origin", ["app.example.com", f"{PAGE}/", "null", "HTTPS://APP.EXAMPLE.COM", f"{PAGE},{OTHER}"]
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match="cors_origins"):
        Settings(cors_origins=origin)
