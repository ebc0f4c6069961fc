"""Taking the values of removed columns out of rows, beside all else.

A removed column is out of sight at once, because nobody asks for its number any more; its values stay in the
rows. This goes over the rows of such a table a bounded stretch at a time, and has the table's actor, the only
writer of rows, take them out. How far it went lies in the store, so it goes on after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunkline.actors.runtime.ref import Ref
from trunkline.actors.tables.messages import TidyRows
from trunkline.actors.tables.rows import find_table
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.runtime.system import System
    from trunkline.store.snapshot import Snapshot

STEP_ROWS: Final = 5000
"""Rows that one step looks at, in a worker thread: about 10 ms."""

TIDIED_ROWS: Final = 500
"""Rows that one step changes, in one turn of the table: some milliseconds."""


async def tidy(system: System) -> bool:
    """Take one step. False where there is nothing to do."""
    step = await system.read(next_step)
    if step is None:
        return False
    await system.ask(*step)
    return True


def next_step(snapshot: Snapshot) -> tuple[Ref, TidyRows] | None:
    """What the next table is to be asked; None where no table has a note."""
    prefix = keys.TIDY_PREFIX
    found = next(snapshot.range(keys.META, prefix, keys.prefix_end(prefix)), None)
    if found is None:
        return None
    id, note = bytes(found[0][len(prefix) :]), decode(found[1])
    application, after = note["applicationId"], note["after"]
    table = find_table(snapshot, application, id)
    low, high = keys.rows_prefix(id, table.generation), keys.rows_head_key(id, table.generation)
    rows: list[bytes] = []
    reached: bytes | None = None
    # What sorts right behind a key is the key with a byte more.
    for looked_at, (key, raw) in enumerate(
        snapshot.range(keys.ROWS, low + after + b"\x00" if after else low, high), start=1
    ):
        if not decode(raw).keys() <= table.columns.numbers:
            rows.append(bytes(key[-keys.ID_BYTES :]))
        if looked_at == STEP_ROWS or len(rows) == TIDIED_ROWS:
            reached = bytes(key[-keys.ID_BYTES :])
            break
    return Ref("dataTable", application, id), TidyRows(rows=rows, begun=after, reached=reached)
