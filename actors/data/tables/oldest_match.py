"""The row that a query finds among all rows of a table, those included whose commit is in progress.

For a turn of the table's actor, which waits here: no other turn changes the rows meanwhile, so what is found holds
until the turn ends.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.host import Host
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import Overloaded
from trunkline.actors.data.tables.kind import DATA_TABLE
from trunkline.actors.data.tables.pages import open_rows
from trunkline.actors.data.tables.plan import make_plan
from trunkline.actors.data.tables.rows import RowQuery

if TYPE_CHECKING:
    from trunkline.store.snapshot import Snapshot

_PAUSE_S: Final = 0.001


async def oldest_match(
    system: Host, ref: Ref, raw: bytes, changes: int, query: dict[str, Any]
) -> bytes | None:
    """The id of the oldest row that matches, in a snapshot in which the table has this record and so many changes.

    Raises `QueryError`, and `Overloaded` if a commit fails meanwhile.
    """
    epoch = system.journal.epoch
    search = partial(_search, ref=ref, raw=raw, changes=changes, query=query)
    while system.journal.epoch == epoch:
        is_current, found = await system.read(search)
        if is_current:
            return found
        await trio.sleep(_PAUSE_S)
    raise Overloaded("A commit has failed. Try again in a second.")


def _search(
    snapshot: Snapshot, *, ref: Ref, raw: bytes, changes: int, query: dict[str, Any]
) -> tuple[bool, bytes | None]:
    """Whether the snapshot is current, and the id of the oldest row that matches in it."""
    if records.raw_of(snapshot.get, DATA_TABLE, ref.parent, ref.id) != raw:
        return False, None
    rows = open_rows(snapshot, ref.parent, ref.id)
    if rows.counts.changes != changes:
        return False, None
    row_query = RowQuery(rows.table.columns, query)
    plan = make_plan(rows, row_query, query)
    matching = (id for id, values in plan.rows(rows) if row_query.matches(id, values))
    return True, next(matching, None)
