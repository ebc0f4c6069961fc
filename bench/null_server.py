"""A server that does nothing: every request gets the same small answer. It shows the maximum of a load generator.

Run as ``python -m trunkline.bench.null_server``: it prints its port and ends when its standard input does,
so that it never outlives the process that started it. A load that reaches nearly the same rate against a real
server measures the generator, not the server.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httptools

from trunkline.bench.cores import on_cores
from trunkline.bench.errors import BenchError
from trunkline.bench.transport import Origin

ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 16\r\n"
    b'ratelimit: "send_state";r=29;t=15\r\nratelimit-policy: "send_state";q=30;w=15\r\n\r\n{"success":true}'
)
"""As large as the real answer to a state."""

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0


@contextmanager
def null_server(cores: frozenset[int] | None = None) -> Iterator[Origin]:
    """Run a null server in a process of its own; yields its address."""
    command = [sys.executable, "-m", "trunkline.bench.null_server"]
    with on_cores(cores):
        started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - ourselves
    with started as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
            line = process.stdout.readline() if ready else b""
            if not line.strip().isdigit():
                raise BenchError("The null server, against which the generator is measured, did not start.")
            yield Origin("127.0.0.1", int(line), tls=False, prefix="")
        finally:
            process.stdin.close()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


class _Client:
    """One connection: counts complete requests and answers each."""

    __slots__ = ("complete", "parser", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.complete = 0
        self.parser = httptools.HttpRequestParser(self)

    def on_message_complete(self) -> None:
        self.complete += 1

    def serve(self) -> bool:
        """Answer the received requests; False when the connection has ended."""
        try:
            data = self.sock.recv(1 << 18)
            self.parser.feed_data(data)
            while self.complete:
                self.complete -= 1
                # Answers are tiny and sent one at a time, so they always fit into the kernel's buffer.
                self.sock.send(ANSWER)
        except BlockingIOError:
            return True
        except (OSError, httptools.HttpParserError):
            return False
        return bool(data)


def main() -> None:
    """Serve until standard input ends."""
    clients: dict[int, _Client] = {}
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener, select.epoll() as poll:
        listener.setblocking(False)
        poll.register(listener, select.EPOLLIN)
        poll.register(sys.stdin, select.EPOLLIN)
        print(listener.getsockname()[1], flush=True)
        while True:
            for fd, _ in poll.poll():
                if (client := clients.get(fd)) is not None:
                    if not client.serve():
                        del clients[fd]
                        client.sock.close()
                elif fd == listener.fileno():
                    with suppress(BlockingIOError):
                        while True:
                            sock, _ = listener.accept()
                            sock.setblocking(False)
                            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                            clients[sock.fileno()] = _Client(sock)
                            poll.register(sock, select.EPOLLIN)
                else:
                    return


if __name__ == "__main__":
    main()
