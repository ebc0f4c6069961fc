"""Clients that leave early: a stream, a download and a connection are given back whoever leaves when."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.test_exports import export
from tests.patience import PATIENCE_S
from trunkline.actors.jobs.runner import Jobs
from trunkline.http.app import create_app
from trunkline.http.pages.site import Site
from trunkline.http.routes import TABLE
from trunkline.http.serve import make_dispatcher
from trunkline.http.wire.transport import ClientGone

ROUNDS = 20


async def targets(server: Server) -> list[str]:
    """The paths of the two streams of a device, and of a download."""
    device = await server.device(await server.application())
    _, log = await export(server, device)
    link = urlsplit(log["output"]["file"]["url"])
    return [f"{device}/commandStream", f"{device}/stateStream", f"{link.path}?{link.query}"]


def opened(server: Server) -> int:
    return len(server.system.streams) + server.system.component(Jobs).results.downloads


class Leaver:
    """A client of the application itself that leaves when the head of its response is sent."""

    def __init__(self, how: str) -> None:
        self.heads = 0
        self._how = how
        self._body_received = False
        self._scope = trio.CancelScope()

    async def call(self, app: Any, server: Server, target: str) -> None:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"x"), (b"authorization", f"Bearer {server.token}".encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "extensions": {},
        }
        with trio.fail_after(PATIENCE_S), self._scope:
            try:
                await app(scope, self._receive, self._send)
            except* ClientGone:
                pass

    async def _receive(self) -> dict[str, Any]:
        if self._body_received:
            await trio.sleep_forever()
        self._body_received = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        assert message["type"] == "http.response.start", "nothing is sent after the client has left"
        assert message["status"] == 200
        self.heads += 1
        if self._how == "gone":
            raise ClientGone("the client closed its connection")
        self._scope.cancel()
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("how", ["gone", "cancelled"])
async def test_what_was_opened_is_closed_where_the_head_cannot_be_sent(server: Server, how: str) -> None:
    """Quart never enters such a body."""
    app = create_app(make_dispatcher(server.system, server.settings), Site(TABLE, "test"))
    for target in await targets(server):
        for _ in range(ROUNDS):
            leaver = Leaver(how)
            await leaver.call(app, server, target)
            assert leaver.heads == 1
            assert opened(server) == 0
