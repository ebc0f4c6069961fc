"""A TLS client that can do what the tests need: resume a session, close its sending half, tell an end from a cut.

Owns a stream over a socket, and certificates for a server on localhost. Owns no test.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import trio
import trustme

from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Secured:
    """A server with a certificate for localhost: its settings, and a context of clients that trust it."""

    settings: dict[str, Any]
    context: ssl.SSLContext


def write_certificate(authority: trustme.CA, directory: Path, **validity: datetime) -> dict[str, Any]:
    """Write a new certificate for localhost and its key; returns the settings that name the files."""
    issued = authority.issue_cert("localhost", "127.0.0.1", **validity)  # type: ignore[arg-type]
    chain, key = directory / "chain.pem", directory / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return {"certfile": str(chain), "keyfile": str(key)}


def trusting(*authorities: trustme.CA) -> ssl.SSLContext:
    """A client that trusts these authorities, and to which an end without a word of TLS is an error."""
    context = ssl.create_default_context()
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    for authority in authorities:
        authority.configure_trust(context)
    return context


class TlsStream:
    """The end of a client. It has the methods of a socket stream that raw connections use."""

    def __init__(
        self, stream: trio.SocketStream, context: ssl.SSLContext, session: ssl.SSLSession | None = None
    ) -> None:
        self._stream = stream
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname="localhost", session=session
        )

    @property
    def socket(self) -> trio.socket.SocketType:
        return self._stream.socket

    async def do_handshake(self, first: bytes = b"") -> None:
        """With `first` in one piece with its end.

        Raises ssl.SSLError, or trio.BrokenResourceError where the server ends the connection.
        """
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    self.tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await self._flush()
                    await self._receive()
                except ssl.SSLEOFError:
                    raise trio.BrokenResourceError from None
            if first:
                self.tls.write(first)
            await self._flush()

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._stream.send_all(self._outgoing.read())

    async def _receive(self) -> None:
        if data := await self._stream.receive_some(65_536):
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def send_all(self, data: bytes) -> None:
        if data:
            await self._stream.send_all(self.encrypted(data))

    def encrypted(self, data: bytes) -> bytes:
        """What has to be sent on the socket."""
        self.tls.write(data)
        return self._outgoing.read()

    async def receive_some(self, size: int) -> bytes:
        """Raises trio.BrokenResourceError where the connection is cut."""
        while True:
            try:
                return self.tls.read(size)
            except ssl.SSLWantReadError:
                await self._receive()
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError as problem:
                raise trio.BrokenResourceError from problem

    async def received(self) -> bytes:
        """What has come on the socket and was not decrypted yet."""
        return await self._stream.receive_some(65_536)

    async def send_eof(self, last: bytes = b"") -> None:
        """Close the sending half, with `last` in one piece with the end."""
        if last:
            self.tls.write(last)
        with suppress(ssl.SSLWantReadError):  # the other half stays open
            self.tls.unwrap()
        await self._flush()

    async def aclose(self) -> None:
        await self._stream.aclose()
