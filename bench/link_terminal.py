"""A person as a device: `trunkline link` shows the commands of a device and sends what is typed as its states.

Owns the lines of the terminal. The link itself is that of any device (`link_client`), in the form of JSON.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.link_client import LinkClient
from trunkline.bench.link_frames import Command
from trunkline.bench.link_queue import FrameQueue
from trunkline.bench.session import Session, device_path


async def run_terminal(
    session: Session,
    application_id: str,
    device_id: str,
    say: Callable[[str], object],
    read_line: Callable[[], str] = sys.stdin.readline,
) -> None:
    """Send each line as a state, and acknowledge each command, until the lines end. Raises BenchError."""
    client = LinkClient(
        session.url,
        device_path(application_id, device_id),
        session.token or "",
        queue=FrameQueue(text=True),
        on_command=lambda command: say(_shown(command)),
        on_refusal=lambda refusal: say(f"frame {refusal.n} is refused: {refusal.type}: {refusal.message}"),
        on_stored=lambda stored: say(f"stored up to frame {stored.n}"),
        on_connected=lambda: say("connected"),
        on_interrupted=lambda problem: say(f"{problem} Connecting again."),
    )
    failure: BaseException | None = None
    last_ms = 0
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            # A line that is never typed must not keep the program from ending.
            while line := await trio.to_thread.run_sync(read_line, abandon_on_cancel=True):
                try:
                    data = state_of_line(line)
                except ValueError as problem:
                    say(str(problem))
                    continue
                if data:
                    # Two states of one time would be one state.
                    last_ms = max(time.time_ns() // 1_000_000, last_ms + 1)
                    say(f"frame {await client.send_state(data, last_ms)}: {line.strip()}")
            await client.settled()
            nursery.cancel_scope.cancel()
    except* BenchError as problems:
        failure = problems.exceptions[0]
    if failure is not None:
        raise failure


def state_of_line(line: str) -> dict[str, Any]:
    """The data of a state, from words such as `temp=21.5 on=true label="on the roof"`. Raises ValueError."""
    data: dict[str, Any] = {}
    try:
        words = shlex.split(line)
    except ValueError as problem:
        raise ValueError(f"The line cannot be read: {problem}.") from None
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise ValueError(f"{word!r} is not a valid value; write NAME=VALUE, such as temp=21.5 on=true.")
        data[name] = _value_of(text)
    return data


def _value_of(text: str) -> Any:
    """A number, true or false as in JSON; anything else is a text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
    return value if isinstance(value, bool | int | float) else text


def _shown(command: Command) -> str:
    payload = msgspec.json.encode(command.payload).decode()
    place = "" if command.device is None else f" for the peripheral {command.device}"
    return f"command {command.id}: {command.name} {payload}{place} (acknowledged)"
