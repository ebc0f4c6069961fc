"""Which counts a summary shows: the parameters `summaryInclude` and `summaryExclude`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Query

OTHER_COUNTS: Final = frozenset({
    "appCount", "instanceCount", "memberCount", "notebookStats", "orgCount", "payloadCount", "pendingInviteCount",
    "storageStats",
})  # fmt: skip
"""The counts of the API that are not those of kinds of records, also those that this server does not show."""

STORED_FILES: Final = "stored"
STORED_BYTES: Final = "bytes"
"""What a kind of files counts beside its records: those that are complete, and their bytes."""


class SummaryChoice(Query, frozen=True):
    """The counts in the summary (comma-separated field names; default: all)."""

    summary_exclude: str | None = None
    summary_include: str | None = None


def chosen_counts(counted: Iterable[str], include: str | None, exclude: str | None) -> Callable[[str], bool]:
    """The test whether a summary shows a count: one of the `counted` kinds, or another one of the API.

    Both parameters are names that are separated by commas. Raises `Invalid` for a name that is no count.
    """
    known = OTHER_COUNTS.union(counted)
    included = known if include is None else _names("summaryInclude", include, known)
    shown = included - (frozenset() if exclude is None else _names("summaryExclude", exclude, known))
    return lambda name: name in shown


def _names(parameter: str, text: str, known: frozenset[str]) -> frozenset[str]:
    names = frozenset(name for name in text.split(",") if name)
    for name in sorted(names - known):
        raise Invalid(
            f"{parameter}: {name[:100]!r} is not a valid count; give names such as {', '.join(sorted(known)[:4])}, "
            "separated by commas."
        )
    return names
