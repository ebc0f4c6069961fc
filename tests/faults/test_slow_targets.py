"""Targets of calls and mails of the server that answer byte by byte and never to the end: given up in time, and told.

Each byte comes before the time-out of a single wait, so only a bound on the whole ends it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.e2e.sse_client import until
from trunkline.actors.core.outgoing.http_calls import Undelivered, get_public, post
from trunkline.actors.core.outgoing.mail import Mail, MailMessage
from trunkline.actors.core.runtime.threads import MAILS, places_of
from trunkline.limits.settings import Settings
from trunkline.store.outbox import Outbox

WAIT_S: Final = 0.3
BYTE_S: Final = 0.02
HEAD: Final = b"HTTP/1.1 200 OK\r\nX-Long: "
GREETING: Final = b"220-a greeting without an end\r\n"


@asynccontextmanager
async def target(begin: bytes, rest: bytes) -> AsyncIterator[int]:
    """A server that says `begin`, and then `rest` again and again, byte by byte; its port."""

    async def talk(stream: trio.SocketStream) -> None:
        try:
            await stream.send_all(begin)
            while True:
                for byte in rest:
                    await stream.send_all(bytes([byte]))
                    await trio.sleep(BYTE_S)
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        (listener, *_) = await nursery.start(partial(trio.serve_tcp, talk, 0, host="127.0.0.1"))
        yield listener.socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_a_call_to_a_target_that_answers_without_an_end_is_given_up() -> None:
    async with target(HEAD, b"x") as port:
        url = f"http://127.0.0.1:{port}/"
        with pytest.raises(Undelivered, match=r"did not answer within 0\.6 seconds"):
            await post(url, b"{}", {}, timeout_s=WAIT_S, private=True)
        with pytest.raises(Undelivered, match=r"did not answer within 0\.6 seconds"):
            await get_public(url, timeout_s=WAIT_S, bytes_max=1_000_000, private=True)


async def test_a_mail_to_a_server_that_greets_without_an_end_is_given_up(tmp_path: Path) -> None:
    """Its thread keeps its place until the connection ends."""
    async with target(b"", GREETING) as port:
        settings = Settings(data_dir=str(tmp_path), smtp_host="127.0.0.1", smtp_port=port, smtp_tls="none")
        mail = Mail(settings, Outbox.prepare(tmp_path / "outbox", 10), timeout_s=WAIT_S)
        with pytest.raises(Undelivered, match=r"did not accept the message within 0\.9 seconds"):
            await mail.send(MailMessage("id", "reader@example.com", "subject", "text", 0))
        assert places_of(MAILS).running == 1
    await until(lambda: not places_of(MAILS).running)
