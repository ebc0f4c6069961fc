"""The ends of runs are stored in their order, also those of a commit that has failed."""

from __future__ import annotations

import errno
from typing import Any

from tests.actors.house import House
from trunkline.actors.engine.ends import Ends
from trunkline.actors.workflows.triggers.queue import TriggerQueue
from trunkline.store import keys


async def test_a_trigger_that_was_changed_and_removed_in_a_commit_that_fails_is_removed(house: House) -> None:
    ends = Ends(house.system, house.system.component(TriggerQueue))
    journal: Any = house.system.journal
    key = keys.trigger_key(1, "application", house.application)
    failing = [OSError(errno.EIO, "told to fail")]

    def sync() -> float:
        if failing:
            raise failing.pop()
        return 0.0

    journal._sync_delay_s = sync
    ends.put_trigger(key, b"with one more attempt")
    ends.flush()
    ends.remove(key)
    ends.flush()
    assert journal.pending_batches == 2
    await house.system.settle()
    assert not failing
    ends.flush()
    await house.system.settle()
    with house.system.store.snapshot() as snapshot:
        assert snapshot.get(keys.TRIGGERS, key) is None
