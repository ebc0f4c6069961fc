"""The client's end of the control socket: a command of the command line asks the server that holds a data directory.

Imports nothing of the server, so a command that only asks starts at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from trunkline.actors.core.values.errors import Invalid
from trunkline.http.hosting.unix_sockets import short_path

SOCKET_NAME: Final = "control.sock"
LINE_BYTES_MAX: Final = 64 * 1024
"""The length of a command."""
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
"""The length of an answer: the traffic of 64 owners with a thousand applications each is 4 MB."""
ANSWER_S: Final = 30
LONG_ANSWERS_S: Final = {"partition.move": 86_400}
"""Commands that may take longer: a move copies all that an application has."""


async def ask_server(
    directory: Path, command: str, arguments: Mapping[str, str], no_server: Exception
) -> Any:
    """Send a command to the server that holds `directory`.

    Raises `Invalid` if the server refuses the command, and `no_server` if there is none or it does not answer.
    """
    try:
        with trio.fail_after(LONG_ANSWERS_S.get(command, ANSWER_S)), short_path(directory) as short:
            async with await trio.open_unix_socket(f"{short}/{SOCKET_NAME}") as stream:
                await stream.send_all(msgspec.json.encode({command: arguments}) + b"\n")
                answer = msgspec.json.decode(await read_line(stream, ANSWER_BYTES_MAX))
    except (OSError, ValueError, trio.BrokenResourceError, trio.TooSlowError):
        raise no_server from None
    if "error" in answer:
        raise Invalid(answer["error"])
    return answer["ok"]


async def read_line(stream: trio.SocketStream, bytes_max: int) -> bytes:
    """One line, the line break included. Raises ValueError if it is longer, or does not end."""
    received = bytearray()
    while not received.endswith(b"\n"):
        piece = await stream.receive_some(LINE_BYTES_MAX)
        if not piece or len(received) + len(piece) > bytes_max:
            raise ValueError("the line did not end")
        received += piece
    return bytes(received)
