"""A client of the device link: states are sent again until they are stored, and commands are printed.

    pip install "websockets>=15" cbor2
    python link_client.py ws://HOST/applications/APPLICATION/devices/DEVICE/link TOKEN < states

`states` has one state a line, its time and its values in JSON: [1700000000000, {"temp": 21.5}]. Each command is printed
as a line of JSON. The client ends when all that it read is stored; if a state was refused, or a line is none, it says
so, goes on, and ends with status 1. It keeps nothing over a restart of its own.
"""

import asyncio
import json
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import cbor2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

CBOR = Subprotocol("trunkline.link.v1+cbor")
HELLO, REPORT, ROWS, COLUMNS, RECEIVED = range(5)
WELCOME, STORED, REFUSAL, COMMAND = range(4)
LATER = frozenset({1001, 1006, 1011, 4408, 4503, 429, 500, 502, 503, 504})
"""The close codes, and the statuses of a handshake, after which a client connects again. Others need a person."""


def problem_of(end: Exception) -> str | None:
    """Why it is of no use to connect again, if it is not."""
    answer = end.response if isinstance(end, InvalidStatus) else getattr(end, "rcvd", None)
    code = getattr(answer, "status_code", None) or getattr(answer, "code", 1006)
    return None if code in LATER else str(end)


class LinkClient:
    """Keeps a link open as an asynchronous context manager, which at its end waits until all is stored."""

    def __init__(
        self, url: str, token: str, on_command: Callable[..., None], waiting_max: int = 1000
    ) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self._on_command, self._waiting_max = on_command, waiting_max
        self._commands: deque[tuple[Any, Any]] = deque(maxlen=1000)  # those that came of late
        self._changed = asyncio.Condition()  # its lock is for all that follows
        self._session, self._n = secrets.randbelow(1 << 53), 0
        self._waiting: deque[list[Any]] = (
            deque()
        )  # frames that are not acknowledged, in the order of their numbers
        self._sent = 0  # so many of them were sent on this connection
        self._socket: ClientConnection | None = None  # while the server welcomes frames
        self._window, self._pause_until_s = 0, 0.0
        self._problem: str | None = None
        self.refused = 0  # so many frames were dropped

    async def __aenter__(self) -> "LinkClient":
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, failure: object, *_: object) -> None:
        """Wait until all is stored. Raises ConnectionError if the link has ended for good."""
        try:
            if failure is None:
                async with self._changed:
                    await self._wait_until(lambda: not self._waiting)
        finally:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def send(self, kind: int, *body: Any) -> None:
        """Send a frame with states: what follows its number. Waits while too many are not acknowledged."""
        async with self._changed:
            await self._wait_until(lambda: len(self._waiting) < self._waiting_max)
            self._n += 1
            self._waiting.append([kind, self._n, *body])
            await self._send_waiting()

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        await self._changed.wait_for(lambda: self._problem is not None or condition())
        if self._problem is not None:
            raise ConnectionError(self._problem)

    async def _send_waiting(self) -> None:
        """Send what the window allows."""
        if self._socket is None or time.monotonic() < self._pause_until_s:
            return
        while self._sent < min(len(self._waiting), self._window):
            try:
                await self._socket.send(cbor2.dumps(self._waiting[self._sent]))
            except ConnectionClosed:
                return  # `_run` connects again
            self._sent += 1

    async def _run(self) -> None:
        delay_s = 1.0
        while self._problem is None:
            try:
                connecting = connect(self._url, subprotocols=[CBOR], additional_headers=self._headers)
                async with connecting as socket:
                    await socket.send(cbor2.dumps([HELLO, {"session": self._session}]))
                    while True:
                        await self._take(socket)
                        delay_s = 1.0
            except (ConnectionClosed, InvalidHandshake, OSError) as end:
                async with self._changed:
                    self._socket = None
                    self._problem = self._problem or problem_of(end)
                    self._changed.notify_all()
            await asyncio.sleep(secrets.SystemRandom().uniform(delay_s / 2, delay_s))
            delay_s = min(60, delay_s * 2)

    async def _take(self, socket: ClientConnection) -> None:
        """Receive one frame, and send what may be sent after it."""
        pause_s = self._pause_until_s - time.monotonic()
        try:
            frame = await asyncio.wait_for(socket.recv(decode=False), pause_s if pause_s > 0 else None)
        except TimeoutError:  # the pause is over
            frame = cbor2.dumps([None])
        kind, *body = cbor2.loads(frame)
        if kind == COMMAND:
            id, name, payload, _time_ms, *device = body
            if (id, device) not in self._commands:
                self._on_command(id, name, payload, *device)
                self._commands.append((id, device))
            await socket.send(cbor2.dumps([RECEIVED, id, *device]))
        async with self._changed:
            if kind == WELCOME:
                self._socket, self._window, self._sent = socket, body[0]["window"], 0
            stored = body[0]["n"] if kind == WELCOME else body[0] if kind == STORED else 0
            while self._waiting and self._waiting[0][1] <= stored:
                self._waiting.popleft()
                self._sent = max(0, self._sent - 1)
            if kind == REFUSAL:
                self._refused(*body)
            await self._send_waiting()
            self._changed.notify_all()

    def _refused(self, n: int, error: str, message: str, more: dict[str, Any] | None = None) -> None:
        """A frame that came too early goes into a new frame; any other is dropped."""
        frame = next(frame for frame in self._waiting if frame[1] == n)
        self._waiting.remove(frame)
        self._sent -= 1
        if more and "retryMs" in more:
            self._pause_until_s = time.monotonic() + more["retryMs"] / 1000
            self._n += 1
            self._waiting.append([frame[0], self._n, *frame[2:]])
        else:
            self.refused += 1
            sys.stderr.write(f"{frame} is refused: {error}: {message}\n")


def state_of(line: str) -> list[Any]:
    """The time and the values of a line. Raises ValueError."""
    match json.loads(line):
        case [int() | None as when, dict(values)] if values:
            return [when, values]
    raise ValueError('not a time and its values, such as [1700000000000, {"temp": 21.5}]')


async def main(url: str, token: str) -> int:
    number = wrong = 0
    async with LinkClient(url, token, lambda *command: print(json.dumps(command), flush=True)) as link:
        while line := await asyncio.to_thread(sys.stdin.readline):
            number += 1
            if not line.strip():
                continue
            try:
                state = state_of(line)
            except ValueError as error:
                wrong += 1
                sys.stderr.write(f"line {number} is left out: {error}\n")
            else:
                await link.send(REPORT, *state)
    return 1 if wrong or link.refused else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2])))
