"""The greedy tenant at work, in a process of its own: `python -m trunkline.bench.neighbours.attacker ORDERS`.

Owns sending what the orders say, as fast as the answers come, until its standard input ends. It then prints what was
answered. It has a lower priority than the process that measures, so that it takes no time from it.
"""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import trio

from trunkline.bench.client import Connection
from trunkline.bench.errors import WireError
from trunkline.bench.transport import Origin

Way = Literal["calls", "holds"]
REFUSED_PAUSE_S = 1.0
"""Seconds after a refusal: without them each attack would become a flood of refusals, which is one of its own."""
NICE = 10
BEGIN_S = 3.0
"""Seconds: the measuring begins after them at the latest, whether each connection had an answer or not."""
HELD_BUFFER_BYTES = 4096
HELD, OPEN = "held", "open"
REFUSAL_BYTES_MAX = 300


class Client(msgspec.Struct, kw_only=True):
    """One connection: it makes `requests` in turn, or sends the first and takes nothing."""

    requests: list[bytes]
    way: Way = "calls"


class Orders(msgspec.Struct):
    """What an attack does."""

    url: str
    clients: list[Client]


class Answers(msgspec.Struct):
    """How many answers had each status; `no answer` for what broke off, `held` for connections that were held,
    `open` for calls that had no answer at the end."""

    counts: dict[str, int]
    refusals: dict[str, str]
    """The beginning of the first answer of each status from 400."""

    @property
    def ran(self) -> bool:
        """Whether the attack did anything: something was done for it, or held, or is being computed."""
        return any(status < "3" or status in (HELD, OPEN) for status in self.counts)


class _Attack:
    def __init__(self, orders: Orders) -> None:
        self.counts: Counter[str] = Counter()
        self.refusals: dict[str, str] = {}
        self.open = 0
        self._origin = Origin.parse(orders.url)
        self._orders = orders
        self._begun = 0
        self._all_begun = trio.Event()

    async def run(self) -> None:
        """Attack until standard input ends."""
        async with trio.open_nursery() as nursery:
            for client in self._orders.clients:
                nursery.start_soon(self._calls if client.way == "calls" else self._hold, client)
            with trio.move_on_after(BEGIN_S):
                await self._all_begun.wait()
            sys.stdout.write("begun\n")
            sys.stdout.flush()
            async with trio.lowlevel.FdStream(os.dup(0)) as ending:
                while await ending.receive_some():
                    pass
            if self.open:
                self.counts[OPEN] = self.open
            nursery.cancel_scope.cancel()

    def _count_begun(self) -> None:
        self._begun += 1
        if self._begun == len(self._orders.clients):
            self._all_begun.set()

    async def _calls(self, client: Client) -> None:
        """Make the calls in turn, as fast as they are answered."""
        connection = Connection(self._origin)
        for number, request in enumerate(itertools.cycle(client.requests)):
            status, self.open = "no answer", self.open + 1
            try:
                head, body = await connection.begin(request)
                status, first = head[9:12].decode(), await body.read_some()
                if status >= "4" and status not in self.refusals:
                    self.refusals[status] = first[:REFUSAL_BYTES_MAX].decode("utf-8", "replace")
                while await body.read_some():
                    pass
                if body.closes:
                    connection.close()
            except WireError:
                connection.close()
                status = "no answer"
            self.counts[status] += 1
            self.open -= 1
            if number == 0:
                self._count_begun()
            if status >= "3":
                await trio.sleep(REFUSED_PAUSE_S)

    async def _hold(self, client: Client) -> None:
        """Send the beginning of a request, or a whole one, and take nothing of what comes."""
        host, port = self._origin.host, self._origin.port
        try:
            async with await trio.open_tcp_stream(host, port) as stream:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, HELD_BUFFER_BYTES)
                await stream.send_all(client.requests[0])
                self.counts[HELD] += 1
                self._count_begun()
                await trio.sleep_forever()
        except (OSError, trio.BrokenResourceError):
            self.counts["no answer"] += 1
            self._count_begun()


def main() -> None:
    """Run an attack."""
    os.nice(NICE)
    attack = _Attack(msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Orders))
    trio.run(attack.run)
    with suppress(BrokenPipeError):  # who started this may have been ended
        print(msgspec.json.encode(Answers(dict(attack.counts), attack.refusals)).decode(), flush=True)


if __name__ == "__main__":
    main()
