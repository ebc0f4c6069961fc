"""Ports of this machine that belong to one test alone, while others run beside it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def taken_port() -> socket.socket:
    """A socket with a port of 127.0.0.1 on which nobody listens.

    As long as it is open, no other process is given the port by chance; one that asks for it by its number, as
    a server that was told to, gets it all the same.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


@contextmanager
def reserved_port() -> Iterator[int]:
    """The number of such a port."""
    with taken_port() as holder:
        yield holder.getsockname()[1]
