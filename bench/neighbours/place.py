"""Where an attack takes place: an application of a greedy tenant, and the application's part of the whole attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trunkline.bench.neighbours.attacker import Client
from trunkline.bench.neighbours.tenant import Tenant

CONNECTIONS = 60
"""Those of an attack together."""


class Place(NamedTuple):
    """One of `places` applications."""

    tenant: Tenant
    application: str
    places: int

    def part(self, whole: int) -> int:
        """The part of a number that falls to this application; at least one."""
        return max(1, whole // self.places)


def callers(place: Place, requests: Sequence[bytes]) -> list[Client]:
    """The connections of one application, which make these calls in turn."""
    return [Client(requests=list(requests)) for _ in range(place.part(CONNECTIONS))]
