"""The store of the machine that owns the data, as it goes to one that needs a copy.

Owns its form on a connection: pieces, each behind its length in four bytes; the last one is empty. A copy without that
one is not whole. It is made by a program of its own, at low priority, while the server goes on.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import BinaryIO, Final

import trio

from trunkline.actors.core.runtime.threads import SHORT, in_thread

PIECE_BYTES: Final = 65_536
PIECE_S: Final = 60.0
"""How long a piece is waited for: the program that makes the copy starts first."""
_LENGTH_BYTES: Final = 4


async def send_copy(stream: trio.abc.SendStream, command: list[str]) -> None:
    """Send what a program writes to its standard output. Raises OSError if it fails."""
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        while piece := await process.stdout.receive_some(PIECE_BYTES):
            await stream.send_all(len(piece).to_bytes(_LENGTH_BYTES, "big") + piece)
        if await process.wait():
            raise OSError("the program that copies the store has failed")
        await stream.send_all(bytes(_LENGTH_BYTES))
    finally:
        if process.returncode is None:
            process.kill()
        await process.stdout.aclose()


async def receive_copy(stream: trio.abc.ReceiveStream, path: Path) -> int:
    """Write what comes to a file, which is on disk when this returns; returns its bytes.

    Raises OSError if the copy is not whole.
    """
    size = 0
    with path.open("wb") as file:
        while True:
            with trio.fail_after(PIECE_S):
                length = int.from_bytes(await _exactly(stream, _LENGTH_BYTES), "big")
                if not length:
                    break
                if length > PIECE_BYTES:
                    raise OSError("the copy cannot be read")
                size += file.write(await _exactly(stream, length))
        await in_thread(SHORT, _sync, file)
    return size


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


async def _exactly(stream: trio.abc.ReceiveStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = await stream.receive_some(size - len(data))
        if not piece:
            raise OSError("the copy is not whole")
        data += piece
    return data
