"""Loads whose clients are connected to chosen processes of a server, and devices in several applications.

A client cannot choose the process that accepts its connection. So while the connections of one process are opened, the
others are stopped (SIGSTOP); nothing is measured then. Does not own the loads themselves (`trunkline.bench`).
"""

from __future__ import annotations

import copy
import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from trunkline.bench.client import Connection
from trunkline.bench.fleet import Fleet, StatePost
from trunkline.bench.ledger import Audit, StateLedger
from trunkline.bench.link_frames import LINK_HEADERS
from trunkline.bench.link_load import LinkLoad
from trunkline.bench.link_states import Form
from trunkline.bench.load import CallConnection, Caller, Load, Tally
from trunkline.bench.mqtt_load import MqttLoad
from trunkline.bench.mqtt_states import Device, window_of
from trunkline.bench.progress import ProgressBar
from trunkline.bench.reactor import Reactor
from trunkline.bench.scenarios.link import audit_many
from trunkline.bench.scenarios.mqtt import AccessKey
from trunkline.bench.session import Session
from trunkline.bench.transport import Origin
from trunkline.bench.wire_protocol import HttpProtocol


class Place(NamedTuple):
    """An application with devices, each with a token of its own, and the process that has it."""

    application: str
    tokens: dict[str, str]
    """By the ids of the devices."""
    key: AccessKey
    pid: int


class SpreadFleet(Fleet):
    """The devices of all places, in this order."""

    def __init__(self, session: Session, places: Sequence[Place]) -> None:
        super().__init__(session, "", [id for place in places for id in place.tokens])
        self.places = places
        self._of = {id: place for place in places for id in place.tokens}
        self._origin = session.origin

    def of_place(self, number: int) -> list[StateLedger]:
        """The ledgers of the devices of a place."""
        return [ledger for ledger in self.ledgers if ledger.device_id in self.places[number].tokens]

    def link(self, device_id: str) -> bytes:
        return self._as(device_id).encode("GET", self._path(device_id, "link"), headers=LINK_HEADERS)

    def poster(self, tally: Tally, ledger: StateLedger, count: int) -> Caller:
        """The caller of a device, which posts its next states."""
        id = ledger.device_id
        return StatePost(tally, ledger, self._as(id).encode_head("POST", self._path(id, "state")), count)

    async def audit_all(self, session: Session, bar: ProgressBar) -> Audit:
        """Read back the states of all devices, or count and sum them."""
        found = Audit()
        for number, place in enumerate(self.places):
            view = copy.copy(self)
            view.application_id, view.ledgers = place.application, self.of_place(number)
            await audit_many(view, session, found, bar)
        return found

    def _as(self, device_id: str) -> Connection:
        return Connection(self._origin, token=self._of[device_id].tokens[device_id])

    def _path(self, device_id: str, what: str) -> str:
        return f"/applications/{self._of[device_id].application}/devices/{device_id}/{what}"


@contextmanager
def only(pid: int, pids: Sequence[int]) -> Iterator[None]:
    """Stop all of these processes but one."""
    others = [other for other in pids if other != pid]
    for other in others:
        os.kill(other, signal.SIGSTOP)
    try:
        yield
    finally:
        for other in others:
            os.kill(other, signal.SIGCONT)


class GreetingProtocol(HttpProtocol):
    """HTTP/1.1; the first call is answered by whichever process has accepted the connection."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self.greeting = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
        self.greetings = 1


class PlacedPosts(Load):
    """Posts of all devices. `crossed`: each over a connection to the process of the next place."""

    def __init__(
        self,
        reactor: Reactor,
        origin: Origin,
        fleet: SpreadFleet,
        connections: int,
        count: int,
        *,
        crossed: bool = False,
    ) -> None:
        tally, size = Tally("posts", "states"), len(fleet.places)
        self._at = [fleet.places[(number + crossed) % size].pid for number in range(size)]
        callers = [
            [fleet.poster(tally, ledger, count) for ledger in fleet.of_place(number)]
            for number in range(size)
        ]
        self._place_of = {caller: number for number, some in enumerate(callers) for caller in some}
        self._waits: list[deque[Caller]] = [deque() for _ in callers]
        self._number_of: dict[CallConnection, int] = {}
        self._pids = {place.pid for place in fleet.places}
        super().__init__(
            reactor, origin, [*self._place_of], connections=connections, protocol=GreetingProtocol
        )

    def open(self) -> None:
        every, opened = self._connections, deque[CallConnection]()
        for number, pid in enumerate(self._at):
            self._connections = every[number :: len(self._at)]
            self._number_of.update(dict.fromkeys(self._connections, number))
            self._unopened = deque(self._connections)
            with only(pid, [*self._pids]):
                super().open()
            opened += self._idle
            self._idle.clear()
        self._connections, self._idle = every, opened

    def _start_due(self) -> None:
        if not self._running:
            return
        while self._ready:
            caller = self._ready.popleft()
            self._waits[self._place_of[caller]].append(caller)
        for _ in range(len(self._idle)):
            connection = self._idle.popleft()
            waiting = self._waits[self._number_of[connection]]
            if waiting:
                self._begin(connection, waiting.popleft())
            else:
                self._idle.append(connection)


class PlacedLinks(LinkLoad):
    """Frames over links, of some devices of each place, at the process of the place."""

    def __init__(
        self, reactor: Reactor, origin: Origin, fleet: SpreadFleet, links: int, form: Form, size: int
    ) -> None:
        each = links // len(fleet.places)
        ledgers = [ledger for number in range(len(fleet.places)) for ledger in fleet.of_place(number)[:each]]
        super().__init__(reactor, origin, fleet, ledgers, Tally("frames", "states"), form, size)
        self._each = each
        self._pids = [place.pid for place in fleet.places]

    def open(self) -> None:
        every = self._links
        for number, pid in enumerate(self._pids):
            self._links = every[number * self._each : (number + 1) * self._each]
            self._unopened = deque(self._links)
            with only(pid, self._pids):
                super().open()
        self._links = every


class PlacedMqtt(MqttLoad):
    """States of QoS 1, of some devices of each place, at the process of the place."""

    def __init__(self, reactor: Reactor, origin: Origin, fleet: SpreadFleet, clients: int) -> None:
        super().__init__(reactor, Tally("messages", "states"))
        each = clients // len(fleet.places)
        self._pids = [place.pid for place in fleet.places]
        self._groups = [
            [
                Device(self, origin, place.key.connect(ledger.device_id), ledger, 1, window_of(clients))
                for ledger in fleet.of_place(number)[:each]
            ]
            for number, place in enumerate(fleet.places)
        ]

    def open(self, together: int = 256) -> None:
        for group, pid in zip(self._groups, self._pids, strict=True):
            self.publishers, self._ready = group, 0
            with only(pid, self._pids):
                super().open(together)
        self.publishers = [client for group in self._groups for client in group]
