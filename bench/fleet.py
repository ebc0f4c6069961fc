"""The application and the devices that a load creates for itself, and their calls.

Owns names, ids and encoded request heads. The application and the devices are not deleted afterwards: a load
test needs a server of its own.
"""

from __future__ import annotations

import time
from urllib.parse import urlencode

from trunkline.bench.client import Connection
from trunkline.bench.errors import BenchError
from trunkline.bench.framing import Response
from trunkline.bench.ledger import (
    ACKNOWLEDGED,
    ATTRIBUTES,
    DAY_MS,
    REFUSED,
    Audit,
    StateLedger,
    audit,
    body_of,
)
from trunkline.bench.link_frames import LINK_HEADERS
from trunkline.bench.load import Caller, Tally
from trunkline.bench.progress import ProgressBar
from trunkline.bench.session import Session, device_path

DEVICES_MAX = 1_000_000
"""Devices: each needs about a kilobyte of memory here."""

_SLICE = 512


class Fleet:
    """The devices of one application, and a ledger for the states of each."""

    def __init__(self, session: Session, application_id: str, device_ids: list[str]) -> None:
        self.application_id = application_id
        self.device_ids = device_ids
        # Starts a day ago: each state is one millisecond later, so their times stay in the past at any rate.
        self.first_ms = time.time_ns() // 1_000_000 - DAY_MS
        self.ledgers = [StateLedger(one, self.first_ms) for one in device_ids]
        self._encoder = Connection(session.origin, token=session.token)

    @classmethod
    async def create(cls, session: Session, bar: ProgressBar, name: str, devices: int) -> Fleet:
        """Create an application and its devices."""
        if not 1 <= devices <= DEVICES_MAX:
            raise BenchError(f"--devices must be between 1 and {DEVICES_MAX:,}.")
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        application_id = await session.create_application(
            f"bench {name} {stamp}", f"Made by trunkline bench {name}."
        )
        bar.begin("creating devices")
        ids: list[str] = []
        for first in range(0, devices, _SLICE):
            numbers = range(first, min(first + _SLICE, devices))
            wanted = [{"name": f"bench-{n:06d}", "attributes": ATTRIBUTES} for n in numbers]
            ids += await session.create_devices(application_id, wanted)
            bar.show(len(ids) / devices, f"{len(ids):,} of {devices:,}")
        bar.end(f"{devices:,}")
        return cls(session, application_id, ids)

    def path(self, device_id: str, tail: str = "") -> str:
        """The path of a device, or of ``tail`` under it."""
        return device_path(self.application_id, device_id, tail)

    def post(self, path: str) -> bytes:
        """The head of a POST with a JSON body, up to the value of Content-Length."""
        return self._encoder.encode_head("POST", path)

    def get(self, path: str, **query: object) -> bytes:
        """A complete GET request."""
        return self._encoder.encode("GET", f"{path}?{urlencode(query)}" if query else path)

    def link(self, device_id: str) -> bytes:
        """A complete request for the link of a device."""
        return self._encoder.encode("GET", self.path(device_id, "/link"), headers=LINK_HEADERS)

    def state_posts(self, tally: Tally, *, rehearsal: bool, per_call: int = 1) -> list[Caller]:
        """A caller for each device, which posts its next states. A rehearsal does not use the ledgers."""
        ledgers = [StateLedger(one, self.first_ms) for one in self.device_ids] if rehearsal else self.ledgers
        return [
            StatePost(tally, ledger, self.post(self.path(ledger.device_id, "/state")), per_call)
            for ledger in ledgers
        ]

    async def audit(self, session: Session, found: Audit, bar: ProgressBar) -> None:
        """Read the history of every device back and compare it with its ledger."""
        bar.begin("reading states back")
        await audit(
            session,
            self.application_id,
            self.ledgers,
            found,
            lambda done: bar.show(done / len(self.ledgers), f"{found.read:,} states"),
        )
        bar.end(f"{found.read:,} states")


class Get(Caller):
    """Sends the same GET again and again; the answer is not checked."""

    __slots__ = ("_raw",)

    def __init__(self, tally: Tally, raw: bytes) -> None:
        super().__init__(tally)
        self._raw = raw

    def request(self) -> bytes:
        return self._raw


class StatePost(Caller):
    """Posts the next states of one device: an object, or an array if a call carries several."""

    __slots__ = ("_count", "_head", "_ledger", "_number")

    def __init__(self, tally: Tally, ledger: StateLedger, head: bytes, count: int) -> None:
        super().__init__(tally)
        self._ledger = ledger
        self._head = head
        self._count = count
        self._number = 0

    def request(self) -> bytes:
        self._number = self._ledger.begin(self._count)
        return with_body(self._head, body_of(self._number, self._count, self._ledger.first_ms))

    def acknowledged(self, response: Response) -> int:
        self._ledger.settle(self._number, self._count, ACKNOWLEDGED)
        return self._count

    def refused(self) -> None:
        self._ledger.settle(self._number, self._count, REFUSED)


def with_body(head: bytes, body: bytes) -> bytes:
    """A complete request from its head, up to the value of Content-Length, and its body."""
    return b"%b%d\r\n\r\n%b" % (head, len(body), body)
