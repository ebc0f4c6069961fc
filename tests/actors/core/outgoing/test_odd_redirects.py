"""Redirects to what is no URL."""

from __future__ import annotations

import httpx
import pytest

from tests.web_server import Answer, WebServer, web_server
from trunkline.actors.core.outgoing.http_calls import Received, Undelivered, post
from trunkline.actors.core.outgoing.http_requests import Request, fetch
from trunkline.actors.core.values.errors import Invalid

NO_URLS = ["javascript:alert(1)", "http://xn--zzzz--/", "http://[::1", "http://127.0.0.1:99999/", "http://"]


async def got(server: WebServer, **how: bool) -> Received:
    request = Request("GET", server.url, httpx.Headers(), **how)  # type: ignore[arg-type]
    return await fetch(request, timeout_s=30, bytes_max=1000, private=lambda _: True)


@pytest.mark.parametrize("location", NO_URLS)
async def test_a_redirect_to_what_is_no_url_is_an_answer_that_nobody_follows(location: str) -> None:
    async with web_server(lambda _: Answer(302, (("Location", location),))) as server:
        with pytest.raises(Undelivered, match=r"302 \(redirects are not followed\)"):
            await post(server.url, b"{}", {}, timeout_s=30, private=True)
        answer = await got(server, follows_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (302, location)
        with pytest.raises((Undelivered, Invalid), match="redirect"):
            await got(server)
