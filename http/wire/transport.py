"""The interface through which a connection uses its socket.

Owns the contract only. `socket_transport.py` implements it for cleartext, `tls_transport.py` for TLS. A connection
never calls its socket directly.

Why there are methods that do not wait (`nowait`): most requests are received, and most responses sent, by callbacks,
which cannot wait. The connection's task does only what is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from trunkline.http.wire.readiness import OnReadable


class ClientGone(OSError):
    """The client is gone, so nothing can be sent. ASGI requires that this is an OSError."""


class Transport(Protocol):
    """The bytes of one connection in both directions, and a deadline for each direction.

    One task and its callbacks use it. The deadlines are times of Trio's clock, infinite where there is none;
    the engine ends the connection when one has passed.
    """

    read_deadline_s: float
    """Set by the connection: only it knows what it reads."""
    write_deadline_s: float
    """Set by the transport while it waits for the client to take what is sent."""
    input_ended: bool
    """The client has closed its sending half, or is gone: all that it sent was received."""
    gone: bool
    """The client is gone, so nothing can be sent either."""

    @property
    def has_unsent(self) -> bool:
        """Part of the last bytes is not sent yet: if it never is, the client sees half a message."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """The length of that part."""
        ...

    # Receiving.

    def receive_nowait(self) -> bytes | None:
        """Up to 64 KiB of what has come, over TLS a record more; None where nothing has, b"" where the input has
        ended."""
        ...

    async def receive(self) -> bytes:
        """The same, but wait until something has come or the input has ended."""
        ...

    def wait(self, on_readable: OnReadable) -> Awaitable[None]:
        """Call `on_readable` whenever something may have come, until it returns False or `wake` is called.

        Also returns without a reason: the caller looks at its own state and may wait again.
        """
        ...

    def sleep(self, on_readable: OnReadable, awake: Callable[[], None]) -> bool:
        """Wait as `wait` does, but without a task: `awake` is called once, when the wait ends.

        False if there may be something to read already; then nothing was done.
        """
        ...

    def read_again(self, on_readable: OnReadable) -> Awaitable[None]:
        """Call `on_readable` once, in another turn of the loop, as there may be something to read."""
        ...

    def detach(self) -> None:
        """Stop watching the socket, before it is closed or goes on under another protocol."""
        ...

    def wake(self) -> None:
        """End `wait`, if the task is in it."""
        ...

    def mark_readable(self) -> None:
        """The next `wait` or `receive` tries to receive at once: `on_readable` may have left something."""
        ...

    def has_input(self) -> bool:
        """Whether there are bytes to receive."""
        ...

    # Sending.

    def send_nowait(self, data: bytes) -> bool:
        """Send what can be sent at once. False where a part is left, which `flush` has to send.

        Must not be called while a part is left. Raises ClientGone.
        """
        ...

    def flush_nowait(self) -> bool:
        """Send what is left as far as that is possible at once. True where nothing is left. Raises ClientGone."""
        ...

    def watch_writable(self) -> None:
        """From now on, `wait` also calls when the socket takes more: for who sends by `flush_nowait`.

        Then the caller sets the deadline of what is left.
        """
        ...

    def send(self, data: bytes) -> Awaitable[None]:
        """Send all of `data`, after what an earlier call that was cancelled has left. Raises ClientGone.

        A cancelled call leaves the part that was not sent (`has_unsent`).
        """
        ...

    async def flush(self) -> None:
        """Send what is left. Raises ClientGone."""
        ...

    # Ending. Closing the socket itself is left to its owner.

    async def linger(self) -> None:
        """Close the sending half, then drop what comes until the client closes too or its time is over."""
        ...

    def send_last(self, data: bytes) -> None:
        """Send the last bytes of a connection, as far as that is possible without waiting.

        b"" sends nothing in cleartext; over TLS the client is told that the connection ends.
        """
        ...
