"""Archives: query strings."""

from __future__ import annotations

from trunkline.actors.core.values.structs import Query
from trunkline.actors.core.values.terms import QueryTime


class ArchiveDate(Query, frozen=True):
    """The day (UTC) that is archived: any time of it."""

    date: QueryTime
