"""Counts of requests: how often endpoints were called, by status, version and domain, in memory and then on disk.

Requests are counted in memory and stored together after `experience_counts_delay_s`, because most of them write nothing
else: a commit for each would cost more than the answer. So a count is a moment late, and what was counted in that
moment is lost if the process is killed. A server that stops in good order stores it.
"""

from __future__ import annotations

from collections import Counter

import structlog
import trio

from trunkline.actors.core.runtime.actor import Actor
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.moved import Moved
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError, NotFound
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import HOUR_MS, MINUTE_MS
from trunkline.store import keys

_log = structlog.get_logger("trunkline.experience")


class AddCounts(Message, frozen=True):
    """Add requests to the counts of an application. `counts` are those of an endpoint in an hour, by `count_name`."""

    counts: list[tuple[int, bytes, dict[str, int]]]


def count_name(minute: int, status: int, domain: str, version: str) -> str:
    """The name of a counter. Only the version, which is the last part, may contain a space."""
    return f"{minute} {status} {domain} {version}"


def parts_of_name(name: str) -> tuple[int, str, str, str]:
    """Minute, status, domain and version of a counter."""
    minute, status, domain, version = name.split(" ", 3)
    return int(minute), status, domain, version


def add_counts(actor: Actor, message: AddCounts) -> None:
    """Stage the counts, also as payloads of the application."""
    application = actor.ref.id
    for hour, endpoint, counts in message.counts:
        actor.add(keys.COUNTS, keys.endpoint_counts_key(application, hour, endpoint), counts)
        actor.add(keys.COUNTS, keys.app_counts_key(application, hour), {"endpoint": sum(counts.values())})


class RequestCounts(Moved):
    """The counts of one system that are not stored yet. A component; run `run` for as long as it is used."""

    def __init__(self, system: Host) -> None:
        self.answered: Counter[int] = Counter()
        """All requests since the start of the process, by status."""
        self._system = system
        self._counted: dict[bytes, dict[tuple[int, bytes], Counter[str]]] = {}
        self._something = trio.Event()

    def add(self, application: bytes, endpoint: bytes, status: int, domain: str, version: str) -> None:
        """Count a request that was answered now."""
        self.answered[status] += 1
        minute = self._system.clock.wall_ms() // MINUTE_MS
        counts = self._counted.setdefault(application, {})
        place = (minute * MINUTE_MS // HOUR_MS, endpoint)
        counts.setdefault(place, Counter())[count_name(minute, status, domain, version)] += 1
        self._something.set()

    async def run(self) -> None:
        """Store what was counted until cancelled."""
        while True:
            await self._something.wait()
            await trio.sleep(self._system.limits.experience_counts_delay_s)
            self._something = trio.Event()
            await self.store()

    async def stop(self) -> None:
        """Store what was counted, because the server stops."""
        await self.store()

    async def leave(self, application: bytes) -> None:  # noqa: ARG002 - all are stored
        """Store what was counted, because an application leaves. What is counted later is told where it comes."""
        await self.store()

    async def store(self) -> None:
        """Store what was counted. What cannot be stored now is kept."""
        counted, self._counted = self._counted, {}
        for application, of_application in counted.items():
            message = AddCounts(counts=[(*place, dict(counts)) for place, counts in of_application.items()])
            try:
                await self._system.ask(Ref("experience", application, application), message)
            except NotFound:
                continue  # the application was deleted
            except DomainError as refusal:
                _log.warning("counts of requests put off", reason=refusal.message)
                kept = self._counted.setdefault(application, {})
                for place, counts in of_application.items():
                    kept.setdefault(place, Counter()).update(counts)
                self._something.set()
