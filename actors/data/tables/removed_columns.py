"""Tidying of rows: removes the values of removed columns in the background.

A removed column disappears at once, because its number is no longer used, but its values stay in the rows. The
sweeper calls `tidy_rows` again and again: each step scans a bounded number of rows and asks the table's actor, the
only writer of rows, to remove the values. The progress is in the store, so the work continues after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trunkline.actors.core.records.unreadable import UNREADABLE, log_unreadable
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.data.tables.messages import TidyRows
from trunkline.actors.data.tables.rows import find_table
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.store.snapshot import Snapshot

STEP_ROWS: Final = 5000
"""Rows that one step scans, in a worker thread: about 10 ms."""

TIDIED_ROWS: Final = 500
"""Rows that one step changes, in one turn of the table: some milliseconds."""


async def tidy_rows(system: System) -> bool:
    """Do one step. Return False if there is nothing to do."""
    step = await system.read(next_step)
    if step is None:
        return False
    await system.ask(*step)
    return True


def next_step(snapshot: Snapshot) -> tuple[Ref, TidyRows] | None:
    """Return the next table and the message for it; None if no table has a marker. Passes over unreadable ones."""
    prefix = keys.TIDY_PREFIX
    for key, raw in snapshot.range(keys.META, prefix, keys.prefix_end(prefix)):
        try:
            return _step_of(snapshot, bytes(key[len(prefix) :]), decode(raw))
        except UNREADABLE:
            log_unreadable(keys.META, bytes(key))
    return None


def _step_of(snapshot: Snapshot, id: bytes, marker: dict[str, Any]) -> tuple[Ref, TidyRows]:
    """Return the step for the data table `id`, from its marker."""
    application, after = marker["applicationId"], marker["after"]
    table = find_table(snapshot, application, id)
    low, high = keys.rows_prefix(id, table.generation), keys.rows_head_key(id, table.generation)
    rows: list[bytes] = []
    reached: bytes | None = None
    # The next key after `after` is at least `after` with one more byte.
    for scanned, (key, raw) in enumerate(
        snapshot.range(keys.ROWS, low + after + b"\x00" if after else low, high), start=1
    ):
        try:
            if not decode(raw).keys() <= table.columns.numbers:
                rows.append(bytes(key[-keys.ID_BYTES :]))
        except UNREADABLE:
            log_unreadable(keys.ROWS, bytes(key))
        if scanned == STEP_ROWS or len(rows) == TIDIED_ROWS:
            reached = bytes(key[-keys.ID_BYTES :])
            break
    return Ref("dataTable", application, id), TidyRows(rows=rows, begun=after, reached=reached)
