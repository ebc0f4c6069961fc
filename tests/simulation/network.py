"""The network of a life: its wires, the sockets that listen, and who waits for them.

It stands below the engine of the server, which is the real one: `epoll`, the waits of Trio for sockets, and the Unix
sockets between processes are replaced while it is `below_sockets`. Events of `epoll` are edge-triggered, as the engine
asks for them. All processes of a server accept on the same sockets.

Owns which socket is ready, and when pieces arrive. Does not own the bytes (`wires.py`).
"""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ECONNREFUSED
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import trio

from tests.simulation.inner_wires import InnerListener, InnerSocket, InnerWire
from tests.simulation.wires import PROCESS, ListeningSocket, ServerSocket, Wire
from trunkline.http import serve_processes
from trunkline.http.processes import passage
from trunkline.http.wire import readiness

_FIRST: Final = 1 << 20
"""Numbers from here on are of sockets in memory."""
_ALWAYS: Final = select.EPOLLERR | select.EPOLLHUP


class Network:
    """All wires of one life. `may_stall` is False while the run looks at everything."""

    def __init__(self, chance: Random, reached: Counter[str]) -> None:
        self.chance = chance
        self.reached = reached
        self.may_stall = True
        self.dead: set[int | None] = set()
        """The processes that have died, and were not started again: what they still do is nobody's."""
        self.ending: set[int | None] = set()
        """The processes that drain, and do not begin requests that come."""
        self.has_newer = False
        """Whether clients of HTTP/2 come, and pieces of bodies that are short."""
        self.http = ListeningSocket(self, _FIRST)
        self.mqtt = ListeningSocket(self, _FIRST + 1)
        self._sockets: dict[int, ServerSocket | ListeningSocket | InnerSocket | InnerListener] = {
            _FIRST: self.http,
            _FIRST + 1: self.mqtt,
        }
        self.stalled_s = float("-inf")
        self.elsewhere: Callable[[Path], Path | None] = lambda _directory: None
        """Where the process is on another machine that is reached by the socket in a directory."""
        self._inner: dict[Path, InnerListener] = {}
        """The sockets on which processes listen for each other."""
        self._next = _FIRST + 2
        self._epolls: dict[int, Epoll] = {}
        self._wires: dict[Wire | InnerWire, None] = {}
        self._waits: dict[int, trio.Event] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._sooner = trio.Event()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way to the server."""
        return not any(wire.is_moving for wire in self._wires)

    @property
    def is_quiet_inside(self) -> bool:
        """Whether nothing is under way between processes."""
        return not any(wire.is_moving for wire in self._wires if isinstance(wire, InnerWire))

    def count(self, process: int | None) -> int:
        """The connections that a process has accepted, and of which it has not closed its end."""
        ends = [wire.socket if isinstance(wire, Wire) else wire.ends[1] for wire in self._wires]
        return sum(end.process == process and not end.is_closed for end in ends)

    def wire(self) -> Wire:
        """A new wire."""
        wire = Wire(self, self._next, Random(self.chance.getrandbits(64)))
        self._sockets[self._next] = wire.socket
        self._wires[wire] = None
        self._next += 1
        return wire

    def forget(self, wire: Wire | InnerSocket) -> None:
        """The server has closed its end, or one of both."""
        if isinstance(wire, Wire):
            self._wires.pop(wire, None)
            del self._sockets[wire.socket.fileno()]
        elif wire.wire.other(wire).is_closed:
            self._wires.pop(wire.wire, None)

    # Between processes.

    def inner_wires(self) -> list[InnerWire]:
        """All connections between processes."""
        return [wire for wire in self._wires if isinstance(wire, InnerWire)]

    @contextmanager
    def bound_in(self, directory: Path, name: str) -> Iterator[InnerListener]:
        """A socket on which this process listens for others (`hosting/unix_sockets.py`)."""
        path = directory / name
        with InnerListener(self, self._next, PROCESS.get()) as listener:
            self._sockets[self._next] = self._inner[path] = listener
            self._next += 1
            try:
                yield listener
            finally:
                if self._inner.get(path) is listener:
                    del self._inner[path]

    def connect_in(self, directory: Path, name: str, first: bytes = b"") -> InnerSocket:
        """A socket that is connected to one of another process. Raises OSError if none is there."""
        listener = self._inner.get(directory / name)
        if listener is None and (other := self.elsewhere(directory)) is not None:
            listener = self._inner.get(other / name)
        if listener is None or PROCESS.get() in self.dead:
            raise OSError(ECONNREFUSED, "nobody listens")
        numbers = self._next, self._next + 1
        self._next += 2
        wire = InnerWire(self, numbers, Random(self.chance.getrandbits(64)))
        self._wires[wire] = None
        self._sockets |= zip(numbers, wire.ends, strict=True)
        wire.ends[0].process = PROCESS.get()
        listener.connect(wire.ends[1])
        if first:
            wire.ends[0].send(first)
        return wire.ends[0]

    def kill(self, process: int) -> None:
        """A process has died: the system closes its sockets."""
        self.dead.add(process)
        for path, listener in list(self._inner.items()):
            if listener.process == process:
                del self._inner[path]
                listener.close()
        for wire in list(self._wires):
            if isinstance(wire, Wire):
                if wire.socket.process == process:
                    wire.socket.kill()
            else:
                for end in wire.ends:
                    if end.process == process:
                        end.close()

    # Pieces under way.

    def later(self, at_s: float, arrive: Callable[[], None]) -> None:
        """Let a piece arrive at a time."""
        self._serial += 1
        heappush(self._due, (at_s, self._serial, arrive))
        if self._due[0][1] == self._serial:
            self._sooner.set()

    async def run(self) -> None:
        """Let pieces arrive until cancelled."""
        while True:
            self._sooner = trio.Event()
            if not self._due:
                await self._sooner.wait()
                continue
            with trio.move_on_at(self._due[0][0]):
                await self._sooner.wait()
            now_s = trio.current_time()
            while self._due and self._due[0][0] <= now_s:
                heappop(self._due)[2]()

    # Who waits.

    def changed(self, number: int, events: int) -> None:
        """Something has become of a socket."""
        for epoll in self._epolls.values():
            epoll.changed(number, events)
        self._wake(number)

    def _wake(self, number: int) -> None:
        waiting = self._waits.pop(number, None)
        if waiting is not None:
            waiting.set()

    def events_of(self, number: int) -> int:
        """What is so of a socket now, with the names of `epoll`."""
        if number in self._epolls:
            return select.EPOLLIN if self._epolls[number].ready else 0
        found = self._sockets.get(number)
        return 0 if found is None else found.events()

    async def _wait(self, number: int, events: int) -> None:
        """Wait until one of these is so of a socket."""
        await trio.lowlevel.checkpoint()
        while not self.events_of(number) & (events | _ALWAYS):
            await self._waits.setdefault(number, trio.Event()).wait()

    def epoll(self) -> Epoll:
        made = self._epolls[self._next] = Epoll(self, self._next)
        self._next += 1
        return made

    @contextmanager
    def below_sockets(self) -> Iterator[None]:
        """Be what the server waits for, as long as the body runs."""
        lowlevel: Any = trio.lowlevel
        module: Any = readiness
        serving: Any = serve_processes
        passing: Any = passage
        before = lowlevel.wait_readable, lowlevel.wait_writable, module.select
        between = serving.bound_in, passing.connect_in

        def waiting(real: Any, events: int) -> Any:
            async def wait(sock: Any) -> None:
                number = sock if isinstance(sock, int) else sock.fileno()
                await (real(sock) if number < _FIRST else self._wait(number, events))

            return wait

        lowlevel.wait_readable = waiting(before[0], select.EPOLLIN)
        lowlevel.wait_writable = waiting(before[1], select.EPOLLOUT)
        names = {name: value for name, value in vars(select).items() if name.startswith("EPOLL")}
        module.select = SimpleNamespace(epoll=self.epoll, **names)
        serving.bound_in, passing.connect_in = self.bound_in, self.connect_in
        try:
            yield
        finally:
            lowlevel.wait_readable, lowlevel.wait_writable, module.select = before
            serving.bound_in, passing.connect_in = between


class Epoll:
    """What the engine asks which sockets are ready: edge-triggered, in the order of the events."""

    def __init__(self, network: Network, number: int) -> None:
        self._network = network
        self._number = number
        self._wanted: dict[int, int] = {}
        self.ready: dict[int, None] = {}

    def fileno(self) -> int:
        return self._number

    def register(self, number: int, events: int) -> None:
        self._wanted[number] = events
        self.changed(number, self._network.events_of(number))

    modify = register

    def unregister(self, number: int) -> None:
        del self._wanted[number]
        self.ready.pop(number, None)

    def close(self) -> None:
        self._wanted.clear()

    def changed(self, number: int, events: int) -> None:
        """These events have come; those who did not ask for them do not hear of them."""
        if events & (self._wanted.get(number, 0) | (_ALWAYS if number in self._wanted else 0)):
            self.ready[number] = None
            self._network._wake(self._number)

    def poll(self, _timeout: float, count: int) -> list[tuple[int, int]]:
        """The sockets of which something has come and is so still."""
        found = []
        for number in list(self.ready)[:count]:
            del self.ready[number]
            events = self._network.events_of(number) & (self._wanted[number] | _ALWAYS)
            if events:
                found.append((number, events))
        return found
