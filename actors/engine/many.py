"""Effects on many actors in one visit of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import trio

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.core.values.structs import Message
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.visit import Visit

ASKS_AT_ONCE: Final = 64
"""Those that wait together share a commit."""


async def ask_many(visit: Visit, refs: Sequence[Ref], message: Message) -> list[Any]:
    """Ask each actor; return the answers, or the error of an actor that refuses, which does not stop the others."""
    answers: list[Any] = [None] * len(refs)
    waiting = iter(enumerate(refs))

    async def work() -> None:
        for at, ref in waiting:
            try:
                answers[at] = await visit.ask(ref, message)
            except (DomainError, NodeError) as refusal:
                answers[at] = refusal

    async with trio.open_nursery() as nursery:
        for _ in range(min(ASKS_AT_ONCE, len(refs))):
            nursery.start_soon(work)
    for answer in answers:
        if isinstance(answer, NodeError):  # of the run, not of an actor
            raise answer
    return answers
