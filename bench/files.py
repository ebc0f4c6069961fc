"""A large file: uploaded by its signed form, downloaded in ranges, and compared by its hash.

Owns the two transfers, their rates, and the memory of the server meanwhile. Does not own the load of states beside it:
`trunkline bench state` runs at the same time, in a process of its own.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
import trio

from trunkline.bench.errors import BenchError
from trunkline.bench.server_monitor import ServerMonitor
from trunkline.bench.session import Session, record_id

PIECE_BYTES = 1 << 20
SAMPLE_S = 0.1
TIMEOUT_S = 120.0
_BOUNDARY = "trunkline-bench-files"


class Transfers(NamedTuple):
    """The results: seconds, and bytes of resident memory of the server (0 if it cannot be seen)."""

    upload_s: float
    download_s: float
    equal: bool
    before_bytes: int
    upload_peak_bytes: int
    download_peak_bytes: int
    after_bytes: int


class _Memory:
    """The resident memory of the server, sampled."""

    def __init__(self, monitor: ServerMonitor | None) -> None:
        self._monitor = monitor
        self.peak_bytes = 0

    def now(self) -> int:
        return 0 if self._monitor is None else self._monitor.usage().bytes

    async def sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, self.now())
            await trio.sleep(SAMPLE_S)


class FileTransfer:
    """One file of `size_bytes` random bytes, which is never in memory as a whole."""

    def __init__(self, session: Session, size_bytes: int, range_bytes: int) -> None:
        self._session = session
        self._size_bytes = size_bytes
        self._range_bytes = range_bytes
        self._sent = hashlib.sha256()
        self._received = hashlib.sha256()
        self.application = ""

    async def run(self, monitor: ServerMonitor | None) -> Transfers:
        """Create an application with one file, transfer it, and delete both. Raises BenchError."""
        session = self._session
        self.application = await session.create_application("bench files")
        path = f"/applications/{self.application}/privateFiles"
        body = {"name": "large.bin", "type": "file", "fileSize": self._size_bytes}
        try:
            file = await session.call("POST", path, body)
            before = _Memory(monitor).now()
            upload_s, upload_peak = await self._measured(monitor, lambda: self._upload(file["upload"]))
            shown = await session.call("GET", f"{path}/{record_id(file)}")
            download_s, download_peak = await self._measured(monitor, lambda: self._download(shown["url"]))
            equal = self._sent.digest() == self._received.digest() and shown["fileSize"] == self._size_bytes
            after = _Memory(monitor).now()
        finally:
            await session.call("DELETE", f"/applications/{self.application}")
        return Transfers(upload_s, download_s, equal, before, upload_peak, download_peak, after)

    async def _measured(self, monitor: ServerMonitor | None, work: Any) -> tuple[float, int]:
        """The seconds that a transfer takes, and the peak of the memory meanwhile."""
        memory = _Memory(monitor)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(memory.sample)
            began_s = trio.current_time()
            await work()
            took_s = trio.current_time() - began_s
            nursery.cancel_scope.cancel()
        return took_s, memory.peak_bytes

    async def _upload(self, form: dict[str, Any]) -> None:
        parts = [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in form["fields"].items()
        ]
        parts.append(f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n')
        head, end = "".join(parts).encode(), f"\r\n--{_BOUNDARY}--\r\n".encode()

        async def body() -> AsyncIterator[bytes]:
            yield head
            random, left = os.urandom(PIECE_BYTES), self._size_bytes
            while left:
                # Each piece is another one, without the cost of new random bytes.
                piece = (left.to_bytes(8, "big") + random)[: min(left, PIECE_BYTES)]
                self._sent.update(piece)
                left -= len(piece)
                yield piece
            yield end

        headers = {
            "Content-Type": f"multipart/form-data; boundary={_BOUNDARY}",
            "Content-Length": str(len(head) + self._size_bytes + len(end)),
        }
        async with _client() as client:
            response = await client.post(form["url"], content=body(), headers=headers)
        _check(response, 200)

    async def _download(self, url: str) -> None:
        async with _client() as client:
            for first in range(0, self._size_bytes, self._range_bytes):
                last = min(first + self._range_bytes, self._size_bytes) - 1
                headers = {"Range": f"bytes={first}-{last}"}
                async with client.stream("GET", url, headers=headers) as response:
                    _check(response, 206)
                    async for piece in response.aiter_raw():
                        self._received.update(piece)


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False)


def _check(response: httpx.Response, status: int) -> None:
    if response.status_code != status:
        raise BenchError(f"The server answered a transfer with {response.status_code} instead of {status}.")
