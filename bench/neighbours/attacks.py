"""The table of attacks: what the greedy tenant does, each with the way in which it would take what others need.

Owns the table and the attacks on calls, connections and logins; those by workflows are in `flow_attacks.py`, those by
reading and writing in `store_attacks.py`. An attack is prepared for each application, and has all connections together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from trunkline.bench.neighbours import flow_attacks, store_attacks
from trunkline.bench.neighbours.attacker import Client
from trunkline.bench.neighbours.place import Place, callers
from trunkline.bench.neighbours.tenant import FORM_TYPE, form

FILE_BYTES = 8_000_000
DOWNLOADS, UPLOADS = 260, 64
"""More than the server has places for."""


class Attack(NamedTuple):
    """One way to do harm. `prepare` makes what it needs in one application, and returns the connections there."""

    name: str
    about: str
    prepare: Callable[[Place], Awaitable[list[Client]]]


async def _calls(place: Place) -> list[Client]:
    return callers(place, [place.tenant.request("GET", place.application)])


async def _log_ins(place: Place) -> list[Client]:
    account = place.tenant.account._asdict()
    return callers(place, [place.tenant.request("POST", "/auth/user", account, anonymous=True)])


async def _downloads(place: Place) -> list[Client]:
    path = await place.tenant.file(place.application, bytes(FILE_BYTES))
    request = place.tenant.request("GET", path, anonymous=True)
    return [Client(requests=[request], way="holds") for _ in range(place.part(DOWNLOADS))]


async def _uploads(place: Place) -> list[Client]:
    clients = []
    for _ in range(place.part(UPLOADS)):
        path, body = form(await place.tenant.order(place.application, FILE_BYTES), bytes(FILE_BYTES))
        whole = place.tenant.raw("POST", path, body, kind=FORM_TYPE, anonymous=True)
        clients.append(Client(requests=[whole[: FILE_BYTES // 10]], way="holds"))
    return clients


ATTACKS: Sequence[Attack] = (
    Attack("calls", "calls as fast as they are answered", _calls),
    *(Attack(name, about, prepare) for name, about, prepare in flow_attacks.ATTACKS),
    *(Attack(name, about, prepare) for name, about, prepare in store_attacks.ATTACKS),
    Attack("downloads", f"{DOWNLOADS} readers of a file that take nothing", _downloads),
    Attack("uploads", f"{UPLOADS} uploads that stall", _uploads),
    Attack("logins", "logins with the right password", _log_ins),
)
"""Each attack once."""
