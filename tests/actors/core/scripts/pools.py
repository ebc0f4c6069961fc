"""A pool of scripts for tests, with real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest
import trio

from tests.patience import PATIENCE_S, PATIENT
from trunkline.actors.core.scripts.errors import ScriptError
from trunkline.actors.core.scripts.pool import ScriptPool
from trunkline.limits.table import Limits

APP = b"application "


@asynccontextmanager
async def running_pool(**changes: object) -> AsyncIterator[ScriptPool]:
    """A pool with these limits and one process. Afterwards no process of it is left."""
    pool = ScriptPool(Limits().override({**PATIENT, "script_processes_max": 1, **changes}))
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(pool.run)
            yield pool
            pids = pool.pids
            nursery.cancel_scope.cancel()
    assert pool.pids == []
    assert not any(map(psutil.pid_exists, pids))


async def value(pool: ScriptPool, script: str, payload: Any = None) -> Any:
    """What becomes of a payload."""
    return (await pool.call(script, payload, owner=APP)).value


async def failure(pool: ScriptPool, script: str, payload: Any = None) -> ScriptError:
    """The error of a script that fails."""
    with pytest.raises(ScriptError) as caught:
        await pool.call(script, payload, owner=APP)
    return caught.value
