"""A client of the device link: states are sent again until they are stored, and commands are printed.

    pip install "websockets>=15" cbor2
    python link_client.py ws://HOST/applications/APPLICATION/devices/DEVICE/link TOKEN < states

`states` has one state a line, its time and its values in JSON: [1700000000000, {"temp": 21.5}]. Each command is printed
as a line of JSON. The client ends when all that it read is stored. It keeps nothing over a restart of its own.
"""

import json
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import cbor2
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect
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
    """Keeps a link open until `close`. Its methods may be called by any thread."""

    def __init__(
        self, url: str, token: str, on_command: Callable[..., None], waiting_max: int = 1000
    ) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self._on_command, self._waiting_max = on_command, waiting_max
        self._commands: deque[tuple[Any, Any]] = deque(maxlen=1000)  # those that came of late
        self._changed = threading.Condition()  # its lock is for all that follows
        self._session, self._n = secrets.randbelow(1 << 53), 0
        self._waiting: deque[list[Any]] = (
            deque()
        )  # frames that are not acknowledged, in the order of their numbers
        self._sent = 0  # so many of them were sent on this connection
        self._socket: ClientConnection | None = None  # while the server welcomes frames
        self._window, self._pause_until_s = 0, 0.0
        self._problem: str | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, kind: int, *body: Any) -> None:
        """Send a frame with states: what follows its number. Waits while too many are not acknowledged."""
        with self._changed:
            self._wait_until(lambda: len(self._waiting) < self._waiting_max)
            self._n += 1
            self._waiting.append([kind, self._n, *body])
            self._send_waiting()

    def close(self) -> None:
        """Wait until all is stored. Raises ConnectionError if the link has ended for good."""
        with self._changed:
            self._wait_until(lambda: not self._waiting)
            self._problem = "closed"
            if self._socket is not None:
                self._socket.close()

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._problem is not None or condition())
        if self._problem is not None:
            raise ConnectionError(self._problem)

    def _send_waiting(self) -> None:
        """Send what the window allows."""
        if self._socket is None or time.monotonic() < self._pause_until_s:
            return
        while self._sent < min(len(self._waiting), self._window):
            try:
                self._socket.send(cbor2.dumps(self._waiting[self._sent]))
            except ConnectionClosed:
                return  # the other thread connects again
            self._sent += 1

    def _run(self) -> None:
        delay_s = 1.0
        while self._problem is None:
            try:
                with connect(self._url, subprotocols=[CBOR], additional_headers=self._headers) as socket:
                    socket.send(cbor2.dumps([HELLO, {"session": self._session}]))
                    while True:
                        self._take(socket)
                        delay_s = 1.0
            except (ConnectionClosed, InvalidHandshake, OSError) as end:
                with self._changed:
                    self._socket = None
                    self._problem = self._problem or problem_of(end)
                    self._changed.notify_all()
            time.sleep(secrets.SystemRandom().uniform(delay_s / 2, delay_s))
            delay_s = min(60, delay_s * 2)

    def _take(self, socket: ClientConnection) -> None:
        """Receive one frame, and send what may be sent after it."""
        pause_s = self._pause_until_s - time.monotonic()
        try:
            frame = socket.recv(timeout=pause_s if pause_s > 0 else None, decode=False)
        except TimeoutError:  # the pause is over
            frame = cbor2.dumps([None])
        kind, *body = cbor2.loads(frame)
        if kind == COMMAND:
            id, name, payload, _time_ms, *device = body
            if (id, device) not in self._commands:
                self._on_command(id, name, payload, *device)
                self._commands.append((id, device))
            socket.send(cbor2.dumps([RECEIVED, id, *device]))
        with self._changed:
            if kind == WELCOME:
                self._socket, self._window, self._sent = socket, body[0]["window"], 0
            stored = body[0]["n"] if kind == WELCOME else body[0] if kind == STORED else 0
            while self._waiting and self._waiting[0][1] <= stored:
                self._waiting.popleft()
                self._sent = max(0, self._sent - 1)
            if kind == REFUSAL:
                self._refused(*body)
            self._send_waiting()
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
            sys.stderr.write(f"{frame} is refused: {error}: {message}\n")


if __name__ == "__main__":
    link = LinkClient(sys.argv[1], sys.argv[2], lambda *command: print(json.dumps(command), flush=True))
    for line in sys.stdin:
        link.send(REPORT, *json.loads(line))
    link.close()
