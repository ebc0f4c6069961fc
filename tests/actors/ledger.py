"""The operations of a simulation, and an actor with long turns that tells when it hands its writes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tests.actors.probes import Add, AddSlowly, Tally, tally
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT


class Operation:
    """Something that was asked. `fate` is set at the commit: stored, failed or lost."""

    def __init__(self, life: int, apply: Callable[[], Any]) -> None:
        self.life = life
        self.apply = apply
        self.fate: str | None = None


class LedgerAdd(Add, frozen=True, kw_only=True):
    op: Any


class LedgerAddSlowly(AddSlowly, frozen=True, kw_only=True):
    op: Any


class Ledger(Tally):
    """A tally that tells the simulation when it hands its writes over, which may be long after the ask."""

    kind: ClassVar[str] = "ledger"
    hand_over: ClassVar[Callable[[Operation], None]]
    __slots__ = ("op",)

    def load(self) -> bool:
        self.op: Operation | None = None
        return super().load()

    def on_ledger_add(self, message: LedgerAdd) -> int:
        self.op = message.op
        return self.on_add(message)

    async def on_ledger_add_slowly(self, message: LedgerAddSlowly) -> int:
        value = await self.on_add_slowly(message)
        self.op = message.op
        return value

    def flush(self) -> None:
        if self.op is not None:
            op, self.op = self.op, None
            Ledger.hand_over(op)


LEDGERS = tuple(Ref(Ledger.kind, ROOT, tally(number).id) for number in (1, 2))
