"""A deterministic simulation: a random load on a whole actor system, with failing commits and crashes.

One seed decides everything: what is asked, by whom, at which moment of a virtual clock, in which order Trio
runs tasks that could run at the same time, who leaves before the answer, which commit finds no room or meets
a fault, and when the machine loses power. `python -m tests.actors.simulation SEED` runs one seed and prints
its trace. How answers are judged stands in `world.py`.
"""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from typing import Any

import msgspec
import trio

from tests.actors.expected import ATTRIBUTES
from tests.actors.ledger import LEDGERS, LedgerAdd, LedgerAddSlowly, Operation
from tests.actors.probes import Fail, FailSlowly
from tests.actors.world import (
    CALLS,
    LIMITS,
    START_MS,
    WINDOW_S,
    Reader,
    World,
)
from trunkline.actors.core.records import messages
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import (
    Crashed,
    DomainError,
    Invalid,
    NotFound,
    Overloaded,
    StorageFull,
    TooManyRequests,
)
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.core.values.structs import Message
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.actor.commands import COMMAND_TOPIC
from trunkline.actors.fleet.devices.record import messages as devices
from trunkline.actors.platform.applications import messages as applications
from trunkline.actors.platform.applications.keys import KeyPost
from trunkline.store.flusher import Flusher

CREATOR = messages.Creator(ROOT.hex(), "user", "owner")


class Simulation(World):
    """What is asked of the world."""

    def _id(self) -> bytes:
        return self.system.ids.new(self.system.clock.wall_ms())

    def _application(self) -> Ref:
        return self.chance.choice(list(self.expected.applications) or [Ref("application", ROOT, b"n" * 12)])

    def _device(self) -> Ref:
        """Any device, now and then one that is deleted or gone."""
        known = list(self.expected.devices)
        gone = [ref for ref in self.expected.gone if ref.kind == "device"]
        if gone and self.chance.random() < 0.1:
            return self.chance.choice(gone)
        return self.chance.choice(known) if known else Ref("device", self._application().id, b"n" * 12)

    async def create_application(self) -> None:
        if len(self.expected.applications) >= 3:
            return
        ref = Ref("application", ROOT, self._id())
        message = applications.CreateApplication(user=ROOT, body=applications.ApplicationPost(name="a"))
        await self._ask(ref, message, partial(self.expected.create_application, ref), birth=True)

    async def delete_application(self) -> None:
        ref = self._application()
        await self._ask(ref, applications.DeleteApplication(), partial(self.expected.delete_application, ref))

    async def create_key(self) -> None:
        ref = self._application()
        body = KeyPost(description="k")
        message = messages.CreateRecord(resource="applicationKey", body=body, by=CREATOR)
        answer = await self._ask(ref, message, partial(self.expected.create_key, ref))
        if answer is not None:
            self.keys.append((ref, answer.value.id))

    async def delete_key(self) -> None:
        if self.keys:
            ref, id = self.keys.pop(self.chance.randrange(len(self.keys)))
            message = messages.DeleteRecord(resource="applicationKey", record=id)
            await self._ask(ref, message, partial(self.expected.delete_key, ref))

    async def create_device(self) -> None:
        application = self._application()
        if sum(ref.parent == application.id for ref in self.expected.devices) >= 6:
            return
        ref = Ref("device", application.id, self._id())
        declared = [{"name": name, "dataType": kind} for name, kind in ATTRIBUTES.items()]
        body = msgspec.convert({"name": "d", "attributes": declared}, devices.DevicePost)
        held = self._seen(application)
        apply = partial(self.expected.create_device, ref, "d")
        await self._ask(ref, devices.CreateDevice(body=body), apply, birth=held)

    async def delete_device(self) -> None:
        ref = self._device()
        await self._ask(ref, devices.DeleteDevice(), partial(self.expected.delete_device, ref))

    async def rename(self) -> None:
        ref, name = self._device(), f"d{self.chance.randrange(9)}"
        message = devices.PatchDevice(body=devices.DevicePatch(name=name))
        await self._ask(ref, message, partial(self.expected.rename, ref, name))

    async def report(self) -> None:
        ref, chance = self._device(), self.chance
        now_ms = self.system.clock.wall_ms()
        invalid = chance.random() < 0.08
        states: list[tuple[int | None, dict[str, Any]]] = []
        for _ in range(chance.choice((1, 1, 1, 3))):
            values = {"a": chance.randrange(100), "b": chance.randrange(100), "label": chance.choice("xyz")}
            chosen = chance.sample(list(values), chance.randint(1, 3))
            time_ms = chance.choice(
                (None, START_MS, START_MS + 1, now_ms - 1000)
            )  # few, so that reports meet
            states.append((time_ms, {name: values[name] for name in chosen}))
        body = [
            devices.StateReport(data=data, time=None if time_ms is None else iso(time_ms))
            for time_ms, data in states
        ]
        if invalid:
            body.append(devices.StateReport(data={"unheard of": 1}))
        await self._ask(
            ref,
            devices.SendState(body=body),
            partial(self.expected.report, ref, states, now_ms),
            invalid=invalid,
        )

    async def command(self) -> None:
        ref, name = self._device(), self._name()
        message = devices.SendCommand(body=devices.CommandPost(name=name))
        await self._ask(ref, message, partial(self.expected.command, [ref], name))

    def _name(self) -> str:
        self.number += 1
        return f"c{self.number}"

    async def command_many(self) -> None:
        """To all or to none: the model has it for each of them, or for nobody."""
        life, name = self.life, self._name()
        refs = list(dict.fromkeys(self._device() for _ in range(self.chance.randint(1, 4))))
        there = all(self._seen(ref) for ref in refs)
        fading = any(self._is_fading(ref) for ref in refs)
        windows = [self.windows.setdefault((ref, "send_command"), []) for ref in refs]
        now_s = trio.current_time()
        fits = all(sum(now_s - at_s < WINDOW_S for at_s in calls) < CALLS for calls in windows)
        boxes = [self.system.statistics(ref) for ref in refs]
        full = any(box is not None and box.mailbox_depth >= LIMITS.mailbox_length_max for box in boxes)
        op = Operation(life, partial(self.expected.command, refs, name))
        for calls in windows:
            calls.append(now_s)
        self.in_flight.append(op)
        try:
            await self.system.ask_all(refs, devices.SendCommand(body=devices.CommandToMany(name=name)))
        except DomainError as refusal:
            if self.life == life:
                self._note(f"to {len(refs)}: {type(refusal).__name__}")
                if op.fate is None:
                    for calls in windows:
                        calls.pop()
                crowded = self.system.active >= LIMITS.actors_active_max
                right = {
                    NotFound: fading or not there,
                    TooManyRequests: not fits,
                    Overloaded: full or crowded,
                }
                self._judge(op, refusal, right)
            return
        if self.life == life:
            self._note(f"to {len(refs)}: done")
            assert op.fate == "stored"
            assert there
            assert fits

    async def connect(self) -> None:
        ref = self._device()
        message = devices.SetConnectionStatus(body=devices.Connected())
        await self._ask(ref, message, partial(self.expected.connect, ref))

    async def add(self) -> None:
        """To a ledger, at once or after a while; or a call that it refuses late, or that crashes it."""
        life, chance = self.life, self.chance
        ref, by = chance.choice(LEDGERS), chance.randrange(1, 100)
        op = Operation(life, partial(self.expected.add, ref, by))
        open_gate = trio.Event()
        open_gate.set()
        message: Message
        match chance.randrange(6):
            case 0:
                message = Fail(error=Invalid("late"))
            case 1:
                message = FailSlowly(error=RuntimeError("a bug"), gate=open_gate)
            case 2 | 3:
                message = LedgerAddSlowly(by=by, seconds=chance.choice((0, 0.2, 1)), op=op)
            case _:
                message = LedgerAdd(by=by, op=op)
        try:
            answer = await self.system.ask(ref, message)
        except DomainError as refusal:
            if self.life == life:
                self._note(f"{type(message).__name__}: {type(refusal).__name__}")
                assert op not in self.in_flight, "refused, though its writes wait to be stored"
                fails = isinstance(message, Fail)
                # A long turn may be refused for what it saw at its beginning, without a fate of its own.
                right = {Invalid: fails, Crashed: True, Overloaded: True, StorageFull: not fails}
                self._judge(op, refusal, right)
            return
        if self.life == life:
            self._note(f"{type(message).__name__}: {answer.value}")
            assert isinstance(message, LedgerAdd | LedgerAddSlowly)
            assert op.fate == "stored"

    async def listen(self) -> None:
        """Read a command stream for the rest of this life, sometimes slowly."""
        ref, system = self._device(), self.system
        try:
            subscription = system.subscribe(ref, COMMAND_TOPIC, devices.Listen())
        except NotFound:
            assert self._is_fading(ref) or not self._seen(ref)
            return
        except Overloaded:
            assert system.active >= LIMITS.actors_active_max
            return
        assert self._seen(ref)
        reader = Reader(subscription, ref, self.expected.moment)
        self.readers.append(reader)
        self.callers.start_soon(self._read, reader, self.chance.random() < 0.3)

    async def _read(self, reader: Reader, slow: bool) -> None:
        while reader.subscription.ending is None:
            reader.take(await reader.subscription.receive())
            if slow:
                await trio.sleep(30)
        reader.take(await reader.subscription.receive())
        self.system.streams.close(reader.subscription)

    async def sweep(self) -> None:
        try:
            await self._sweep()
        except Exception as failure:  # noqa: BLE001 - the sweeper puts it off in the same way
            self._note(f"sweep: {type(failure).__name__}")

    async def flush(self) -> None:
        await self.system.component(Flusher).flush_all()

    ACTIONS = (
        report, command, command_many, connect, add, rename, listen, sweep, flush,
        create_application, delete_application, create_key, delete_key, create_device, delete_device,
    )  # fmt: skip
    WEIGHTS = (30, 20, 6, 6, 16, 4, 2, 2, 4, 3, 0.5, 3, 2, 8, 2)


def digest(trace: list[str]) -> str:
    """A trace in short."""
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()


if __name__ == "__main__":
    lines = Simulation(int(sys.argv[1])).run()
    print("\n".join(lines) if sys.argv[2:] == [] else digest(lines))  # noqa: T201
