"""A TLS connection's transport: the socket of `socket_transport.py` with OpenSSL in between.

Owns the TLS session, what was encrypted and not sent yet, and what was decrypted ahead. Does not own which certificates
and protocols are offered, which is the context that the engine passes in.

Why not Trio's TLS stream: a connection receives and sends by callbacks that cannot wait, and the bounds on sending and
receiving are those of the socket. With OpenSSL on buffers in memory, TLS has the same bounds as cleartext.
"""

from __future__ import annotations

import socket
import ssl

from trunkline.http.wire.readiness import Readiness
from trunkline.http.wire.socket_transport import SocketTransport, send_last
from trunkline.http.wire.transport import ClientGone

RECORD_BYTES = 16_384
"""The most that a TLS record holds. No more is given to OpenSSL's buffers at a time: they keep the size that they once
had for as long as the connection is open."""


class TlsTransport(SocketTransport):
    """Implements `Transport` with TLS. `handshake` must return before anything else is called."""

    __slots__ = ("_ahead", "_incoming", "_lingering", "_outgoing", "_plain", "_tls")

    def __init__(
        self, sock: socket.socket, readiness: Readiness, write_timeout_s: float, context: ssl.SSLContext
    ) -> None:
        super().__init__(sock, readiness, write_timeout_s)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._plain: bytes | memoryview = b""
        """What is to be sent and is not encrypted yet: no more than a record is encrypted at a time."""
        self._ahead = b""
        self._lingering = False

    async def handshake(self) -> str | None:
        """Make the TLS session. Returns the protocol that ALPN has chosen. Raises ClientGone where none is made."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self.flush()
                await self._receive_record()
            except ssl.SSLError:
                self._answer()  # the alert that says why
                raise self._client_gone() from None
        await self.flush()
        self.mark_readable()  # a request may have come together with the end of the handshake
        return self._tls.selected_alpn_protocol()

    @property
    def client_certificate(self) -> bytes | None:
        """The certificate of the client in DER, which was verified in the handshake; None if it sent none."""
        return self._tls.getpeercert(binary_form=True)

    async def _receive_record(self) -> None:
        while True:
            await self._readiness.wait(self._descriptor)
            data = super().receive_nowait()
            if data == b"":
                raise self._client_gone()
            if data is not None:
                self._incoming.write(data)
                return

    @property
    def has_unsent(self) -> bool:
        return bool(self._plain or self._unsent or self._outgoing.pending)

    @property
    def unsent_bytes(self) -> int:
        return len(self._plain) + len(self._unsent) + self._outgoing.pending

    # Receiving.

    def receive_nowait(self) -> bytes | None:
        if self._ahead:
            data, self._ahead = self._ahead, b""
            return data
        if self._lingering:
            return super().receive_nowait()  # it is dropped, so it need not be decrypted
        if self.input_ended:
            return b""
        if self._incoming.pending:
            self.mark_readable()  # the event that led here may have told of bytes that are still in the socket
            return self._decrypt(b"")
        # Before OpenSSL is asked: that it has nothing it says by an exception, which costs as much as a request.
        received = super().receive_nowait()
        return self._decrypt(received) if received else received

    def _decrypt(self, received: bytes | memoryview) -> bytes | None:
        """All that has come of whole records; None where that is nothing, b"" where the input has ended."""
        incoming, pieces = self._incoming, []
        if len(received) > RECORD_BYTES:
            received = memoryview(received)
        while not self.input_ended and (received or incoming.pending):
            if received:
                incoming.write(received[:RECORD_BYTES])
                received = received[RECORD_BYTES:]
            try:
                while incoming.pending and not self.input_ended:
                    if piece := self._tls.read(RECORD_BYTES):
                        pieces.append(piece)
                    else:
                        self.input_ended = True  # the client has closed its sending half
            except ssl.SSLWantReadError:
                if not received:
                    break  # the rest of a record is still to come
            except ssl.SSLError:
                self.input_ended = self.gone = True
        self._answer()
        if not pieces:
            return b"" if self.input_ended else None
        if self.input_ended:
            self.mark_readable()  # no event will tell of the end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def has_input(self) -> bool:
        """Whether there are bytes to receive; those of TLS itself do not count."""
        if not self._ahead:
            self._ahead = self.receive_nowait() or b""
            if self._ahead:
                self.mark_readable()
                self.wake()  # the kernel does not report bytes that are received already
        return bool(self._ahead)

    def _answer(self) -> None:
        """Send what TLS itself has to say, where that is possible at once; else the next send takes it along."""
        if self._outgoing.pending and not self._unsent:
            try:
                super().send_nowait(self._outgoing.read())
            except ClientGone:
                return

    # Sending.

    def send_nowait(self, data: bytes) -> bool:
        assert not self._plain, "bytes would be sent in the middle of a message"
        self._plain = data if len(data) <= RECORD_BYTES else memoryview(data)
        return not self._unsent and self._encrypt()

    def flush_nowait(self) -> bool:
        return super().flush_nowait() and self._encrypt()

    async def send(self, data: bytes) -> None:
        if self._plain:
            self._plain = b"".join((self._plain, data))
        elif self.send_nowait(data):
            return
        await self.flush()

    async def flush(self) -> None:
        while True:
            await super().flush()
            if self._encrypt():
                return

    def _encrypt(self) -> bool:
        """Encrypt and send, a record at a time, until nothing is left (True) or the socket takes no more."""
        while self._plain:
            try:
                taken = self._tls.write(self._plain[:RECORD_BYTES])
            except ssl.SSLError:
                raise self._client_gone() from None
            # An empty view would keep the whole message in memory.
            self._plain = memoryview(self._plain)[taken:] if taken < len(self._plain) else b""
            if not super().send_nowait(self._outgoing.read()):
                return False
        return not self._outgoing.pending or super().send_nowait(self._outgoing.read())

    # Ending.

    async def linger(self) -> None:
        self._close_session()
        self._answer()
        self._lingering = True
        await super().linger()

    def send_last(self, data: bytes) -> None:
        if self.has_unsent:
            return
        try:
            if data:
                self._tls.write(data)
        except ssl.SSLError:
            return
        self._close_session()
        send_last(self._sock, self._outgoing.read())

    def _close_session(self) -> None:
        """Tell the client that nothing more comes, so that it can tell an end from a cut."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            return  # it wants the same from the client, which is not waited for
