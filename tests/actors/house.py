"""An actor system on a real store, with a clock that stands still until it is told to move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.patience import PATIENT
from tests.placement import hold_placement
from trunkline.actors import boot, readers
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.runtime.subscription import Subscription
from trunkline.actors.core.runtime.system import System
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.actor.commands import COMMAND_TOPIC
from trunkline.actors.fleet.devices.queries import counts
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.fleet.devices.record import read_messages
from trunkline.actors.platform.applications.messages import ApplicationPost, CreateApplication
from trunkline.limits.settings import Settings
from trunkline.limits.table import Limits
from trunkline.store.flusher import Flusher

START_MS = 1_714_564_800_000
"""2024-05-01T12:00:00Z: an hour begins, and half a day is over."""


class ManualClock:
    """Both clocks of a system, in the hands of a test."""

    def __init__(self, wall_ms: int = START_MS, monotonic_s: float = 1000.0) -> None:
        self._wall_ms = wall_ms
        self._monotonic_s = monotonic_s

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def pass_s(self, seconds: float) -> None:
        """Time goes by."""
        self._monotonic_s += seconds
        self._wall_ms += round(seconds * 1000)

    def set_wall(self, wall_ms: int) -> None:
        """Somebody sets the wall clock."""
        self._wall_ms = wall_ms


class House:
    """A running system with one application, and short ways to ask it."""

    def __init__(self, system: System, clock: ManualClock, application: bytes) -> None:
        self.system = system
        self.clock = clock
        self.application = application

    def ref(self, device: bytes) -> Ref:
        return Ref("device", self.application, device)

    async def device(self, attributes: dict[str, str] | None = None, **fields: Any) -> bytes:
        """The id of a new device; `attributes` are names and data types."""
        declared = {"a": "number", "b": "number", "label": "string"} if attributes is None else attributes
        body = {
            "name": "pump",
            "attributes": [{"name": name, "dataType": kind} for name, kind in declared.items()],
            **fields,
        }
        ref = self.ref(self.system.ids.new(self.clock.wall_ms()))
        answer = await self.system.ask(
            ref, devices.CreateDevice(body=msgspec.convert(body, devices.DevicePost))
        )
        id: bytes = answer.value.id
        return id

    async def ask(self, device: bytes, message: Message) -> Any:
        return (await self.system.ask(self.ref(device), message)).value

    async def report(self, device: bytes, *states: dict[str, Any], as_array: bool = False) -> None:
        """Send states as the API would: one object, or an array of several."""
        plain: Any = list(states) if as_array or len(states) != 1 else states[0]
        await self.ask(device, devices.SendState(body=msgspec.convert(plain, devices.StateOrStates)))

    async def command(self, device: bytes, name: str, **fields: Any) -> None:
        body = msgspec.convert({"name": name, **fields}, devices.CommandPost)
        await self.ask(device, devices.SendCommand(body=body))

    async def read(self, message: Message) -> Any:
        return await readers.read(self.system, message)

    async def states(self, device: bytes, **query: Any) -> list[dict[str, Any]]:
        """The history of a device; the whole of it, oldest first, unless `query` says otherwise."""
        chosen = {"limit": 1000, "sortDirection": "asc", **query}
        found = await self.read(
            read_messages.GetState(
                application=self.application,
                device=device,
                query=msgspec.convert(chosen, devices.History),
                now_ms=self.clock.wall_ms(),
            )
        )
        states: list[dict[str, Any]] = msgspec.json.decode(found)
        return states

    async def commands(self, device: bytes, **query: Any) -> list[dict[str, Any]]:
        chosen = {"limit": 1000, "sortDirection": "asc", **query}
        found: list[dict[str, Any]] = await self.read(
            read_messages.GetCommand(
                application=self.application,
                device=device,
                query=msgspec.convert(chosen, devices.History),
                now_ms=self.clock.wall_ms(),
            )
        )
        return found

    async def composite(self, device: bytes, **query: Any) -> dict[str, tuple[str, Any]]:
        """The composite state as `{name: (time, value)}`."""
        found = await self.read(
            read_messages.GetCompositeState(
                application=self.application,
                device=device,
                query=msgspec.convert(query, devices.CompositeRange),
                now_ms=self.clock.wall_ms(),
            )
        )
        return {name: (entry["time"], entry["value"]) for name, entry in found.items()}

    async def payloads(self, device: bytes) -> dict[str, int]:
        """Payload counts of the last 30 days, without those that are zero."""
        found: dict[str, int] = await self.read(
            counts.CountDevicePayloads(
                application=self.application,
                device=device,
                query=devices.PayloadRange(),
                now_ms=self.clock.wall_ms(),
            )
        )
        return {name: number for name, number in found.items() if number}

    def listen(self, device: bytes, topic: str = COMMAND_TOPIC) -> Subscription:
        """Open a stream of the device."""
        return self.system.subscribe(self.ref(device), topic, devices.Listen())

    async def flush(self) -> None:
        """Bring all reports into sorted runs."""
        await self.system.component(Flusher).flush_all()

    def forget(self) -> None:
        """Deactivate all actors, as if they had been idle."""
        self.system._mailboxes.clear()


@asynccontextmanager
async def running_house(
    data_dir: Path, *, limits: Limits | None = None, **settings_given: Any
) -> AsyncIterator[House]:
    """A system on `data_dir`, without throttles unless `limits` has them."""
    clock = ManualClock()
    given_limits = Limits.off().override(PATIENT) if limits is None else limits
    settings = Settings(
        data_dir=str(data_dir), limits=given_limits, **{"experience_domains": "*.example", **settings_given}
    )
    with boot.opened(settings, clock) as system:
        hold_placement(system, forms=True)
        async with boot.running(system):
            ref = Ref("application", ROOT, system.ids.new(clock.wall_ms()))
            body = ApplicationPost(name="house")
            await system.ask(ref, CreateApplication(body=body, user=bytes(12)))
            yield House(system, clock, ref.id)


@asynccontextmanager
async def running_again(
    data_dir: Path, house: House, offset_ms: int, *, limits: Limits | None = None
) -> AsyncIterator[House]:
    """The data directory of a house that was closed, in a new system, so many milliseconds after the clock's start."""
    clock = ManualClock(START_MS + offset_ms)
    with boot.opened(Settings(data_dir=str(data_dir), limits=limits or Limits.off()), clock) as system:
        hold_placement(system, forms=True)
        async with boot.running(system):
            yield House(system, clock, house.application)


def at(offset_ms: int) -> str:
    """The ISO text of a moment so many milliseconds after the clock's start."""
    return iso(START_MS + offset_ms)
