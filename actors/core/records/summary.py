"""Which counts a summary shows: the parameters `summaryInclude` and `summaryExclude`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Query

COUNTS: Final = frozenset({
    "apiTokenCount", "appCount", "certificateAuthorityCount", "certificateCount", "credentialCount", "dashCount",
    "dataTableCount", "deviceCount", "deviceRecipeCount", "eventCount", "experienceDomainCount",
    "experienceEndpointCount", "experienceGroupCount", "experienceSlugCount", "experienceUserCount",
    "experienceVersionCount", "experienceViewCount", "fileCount", "flowCount", "instanceCount", "integrationCount",
    "keyCount", "memberCount", "notebookCount", "notebookStats", "orgCount", "payloadCount", "pendingInviteCount",
    "privateFileCount", "resourceJobCount", "storageStats", "webhookCount",
})  # fmt: skip
"""The names of all counts of the API, also of those that this server does not show."""

STORED_FILES: Final = "stored"
STORED_BYTES: Final = "bytes"
"""What a kind of files counts beside its records: those that are complete, and their bytes."""


class SummaryChoice(Query, frozen=True):
    """The counts in the summary (comma-separated field names; default: all)."""

    summary_exclude: str | None = None
    summary_include: str | None = None


def chosen_counts(include: str | None, exclude: str | None) -> Callable[[str], bool]:
    """The test whether a summary shows a count. Both parameters are names that are separated by commas.

    Raises `Invalid` for a name that is no count.
    """
    included = COUNTS if include is None else _names("summaryInclude", include)
    shown = included - (frozenset() if exclude is None else _names("summaryExclude", exclude))
    return lambda name: name in shown


def _names(parameter: str, text: str) -> frozenset[str]:
    names = frozenset(name for name in text.split(",") if name)
    for name in sorted(names - COUNTS):
        raise Invalid(
            f"{parameter}: {name[:100]!r} is not a valid count; give names such as {', '.join(sorted(COUNTS)[:4])}, "
            "separated by commas."
        )
    return names
