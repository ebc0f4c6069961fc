"""A connection that fails is told with what the system or TLS says of it, not with the text of an inner exception."""

from __future__ import annotations

import ssl
from functools import partial

import httpx
import pytest
import trio
import trustme

from trunkline.actors.core.outgoing.dialing import Tls, dial
from trunkline.actors.core.outgoing.http_calls import Undelivered, get_json, post
from trunkline.actors.core.outgoing.http_requests import Request, fetch


async def test_a_closed_port_refuses_the_connection() -> None:
    with trio.socket.socket() as unheard:
        await unheard.bind(("127.0.0.1", 0))
        port = unheard.getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        calls = (
            partial(dial, "127.0.0.1", port, None, private=True),
            partial(post, url, b"{}", {}, timeout_s=30, private=True),
            partial(get_json, url, {}, timeout_s=30, bytes_max=100),
        )
        for call in calls:
            with pytest.raises(Undelivered, match=r"cannot be reached.*: Connection refused\.$"):
                await call()


async def test_a_certificate_that_is_not_valid_is_told_as_that() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    async def greet(stream: trio.SSLStream[trio.SocketStream]) -> None:
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_ssl_over_tcp, greet, 0, context)
        port = listeners[0].transport_listener.socket.getsockname()[1]
        request = Request("GET", f"https://127.0.0.1:{port}/", httpx.Headers())
        calls = (
            partial(dial, "127.0.0.1", port, Tls(), private=True),
            partial(fetch, request, timeout_s=30, bytes_max=100, private=lambda _: True),
        )
        for call in calls:
            with pytest.raises(
                Undelivered, match=r"its certificate is not valid \(unable to get local issuer"
            ):
                await call()
        nursery.cancel_scope.cancel()
