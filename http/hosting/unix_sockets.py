"""Unix sockets in a data directory, which only its owner can reach (mode 0600 in a directory of mode 0700).

Owns how they are bound, found and removed. Does not own what is said on them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def bound_in(directory: Path, name: str) -> Iterator[socket.socket]:
    """Bind a socket in a directory; it replaces what an earlier process has left. At the end it is removed."""
    (directory / name).unlink(missing_ok=True)
    with short_path(directory) as short, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(f"{short}/{name}")
        (directory / name).chmod(0o600)
        try:
            yield sock
        finally:
            with suppress(OSError):  # the next start replaces it
                (directory / name).unlink(missing_ok=True)


def connect_in(directory: Path, name: str, first: bytes = b"") -> socket.socket:
    """A socket that is connected to the one that is bound there, and does not block. Raises OSError if none is.

    `first` is sent on it; it is short enough for its buffer.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        with short_path(directory) as short:
            sock.connect(f"{short}/{name}")
        if first:
            sock.send(first)
    except BaseException:
        sock.close()
        raise
    return sock


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """A short path of the directory, because the path of a Unix socket is limited to 107 bytes."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
