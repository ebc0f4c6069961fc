"""An application that lives for a while: its parts work, are read back, and go with it.

Owns the life of the parts. Does not own what they do.

A house makes an application of its own and deletes it at its end, so all that was stored for it must go as well:
houses that follow each other leave the server as it was. Each part keeps a bounded ledger of what was acknowledged, and
removes what is older, so that one that lasts does not grow either.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import trio

from tests.soak.calls import Calls

STEP_S = 150.0
"""Seconds: a step that takes longer is a fault."""


class Part:
    """Something that is done in a house again and again."""

    pause_s = 1.0
    """Between two steps, on the average."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.calls = house.calls
        self.random = Random(house.random.random())

    @property
    def path(self) -> str:
        """The path of the application."""
        return self.house.path

    async def prepare(self) -> None:
        """Make what the steps are about."""

    async def step(self) -> None:
        """Do one thing."""
        raise NotImplementedError

    async def look(self) -> int:
        """Read back what is in the ledger, and compare; returns how many facts were compared."""
        raise NotImplementedError

    async def device(self, name: str, **fields: Any) -> str:
        """Make a device with an attribute `n`; its path."""
        attributes = [{"name": "n", "dataType": "number"}]
        body = {"name": name, "attributes": attributes, **fields}
        made = await self.calls.call("device created", "POST", f"{self.path}/devices", body)
        return f"{self.path}/devices/{made['id']}"


class House:
    """One application with its parts."""

    def __init__(self, calls: Calls, name: str, seed: str, kinds: Sequence[type[Part]]) -> None:
        self.calls = calls
        self.name = name
        self.random = Random(seed)
        self.path = ""
        self.key: dict[str, Any] = {}
        """The credentials of its MQTT clients."""
        self.nursery: trio.Nursery
        """For connections that last as long as the house."""
        self._kinds = kinds
        self._ending = trio.Event()

    async def live(self, life_s: float, pace: float = 1.0) -> None:
        """Live for so long, with pauses that are divided by `pace`."""
        made = await self.calls.call("application created", "POST", "/applications", {"name": self.name})
        self.path = f"/applications/{made['id']}"
        key = await self.calls.call("key created", "POST", f"{self.path}/keys", {})
        self.key = {"username": key["key"], "password": key["secret"].encode()}
        async with trio.open_nursery() as self.nursery:
            parts = [kind(self) for kind in self._kinds]
            async with trio.open_nursery() as working:
                for part in parts:
                    working.start_soon(self._work, part, pace)
                with trio.move_on_after(life_s):
                    await self._ending.wait()
                self._ending.set()
            self.nursery.cancel_scope.cancel()
        await self.calls.call("application deleted", "DELETE", self.path)

    @property
    def has_ended(self) -> bool:
        """Whether its parts only read back."""
        return self._ending.is_set()

    def end(self) -> None:
        """Let it come to its end."""
        self._ending.set()

    async def _work(self, part: Part, pace: float) -> None:
        name = f"{self.name}, {type(part).__name__}"
        try:
            await part.prepare()
            while True:
                with trio.fail_after(STEP_S):
                    await part.step()
                if self._ending.is_set():
                    break
                with trio.move_on_after(self.random.uniform(0.5, 1.5) * part.pause_s / pace):
                    await self._ending.wait()
            with trio.fail_after(STEP_S):
                self.calls.read_back += await part.look()
        except Exception as problem:  # noqa: BLE001 - it is told at the end, and the other parts go on
            self.calls.fault(name, problem)
