"""Changes that are too large for one turn, which a job makes after the visit of the node.

Owns that a change is made in one of these ways only. A run that is repeated after a crash would perhaps find that it is
small now, because the job has made most of it. So the job has the id that the visit gives it, and a repetition looks
for the job first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import ChangeTooLarge
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.engine.visit import Visit
from trunkline.actors.platform.jobs.kind import JOB
from trunkline.actors.platform.jobs.messages import QueueJob


async def change_or_queue(
    visit: Visit,
    change: Callable[[], Awaitable[Any]],
    operation: str,
    input: dict[str, Any],
    *,
    result_to: list[str] | None = None,
) -> tuple[Any, bytes | None]:
    """Make a change, or queue the job that makes it: the answer of the change and None, or None and the job's id.

    `result_to` is that of `QueueJob`.
    """
    application, id = visit.world.application, visit.new_id()
    if records.exists(visit.world.system.journal, JOB, application, id):
        return None, id
    try:
        return await change(), None
    except ChangeTooLarge:
        job = QueueJob(
            operation=operation,
            resource=application,
            input=msgspec.to_builtins(input),
            by=visit.world.creator,
            result_to=result_to,
            id=id,
        )
        await visit.ask(Ref("application", ROOT, application), job)
        return None, id
