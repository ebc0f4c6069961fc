"""What the blocks and the parameters of a dashboard read, as operations of the API.

A reader is shown only what the same token, or the same author, could read by calling these operations: the scope of
a dashboard is not one of the devices, rows and events that the dashboard names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, get_args

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.presentation.dashboards.checks import applications_named
from trunkline.actors.presentation.dashboards.holder import Holder

Read = Literal[
    "application.get",
    "applicationDashboards.get",
    "data.lastValueQuery",
    "data.timeSeriesQuery",
    "dataTableRows.get",
    "device.get",
    "device.getLogEntries",
    "devices.get",
    "events.get",
    "experienceUser.get",
    "flows.get",
]
READS: Final[tuple[Read, ...]] = get_args(Read)
"""The operations that blocks and parameters read as."""

Refusals = Mapping[tuple[bytes, str], DomainError]
"""What may not be shown: an application, and an operation that reads in it. With the reason."""

CheckRead = Callable[[Read], None]
"""Raises `DomainError` if an operation may not be read as."""


def refusals_of(holder: Holder, doc: Doc, check: Callable[[bytes], CheckRead]) -> Refusals:
    """What may not be shown of the applications of a dashboard.

    `check` raises `DomainError` if nothing of an application may be shown; else it gives the check of each operation.
    """
    found: dict[tuple[bytes, str], DomainError] = {}
    own = {holder.id} if holder.kind == "application" else set()
    for application in own | applications_named(doc):
        try:
            check_read = check(application)
        except DomainError as refusal:
            found |= dict.fromkeys(((application, operation) for operation in READS), refusal)
            continue
        for operation in READS:
            try:
                check_read(operation)
            except DomainError as refusal:
                found[application, operation] = refusal
    return found
