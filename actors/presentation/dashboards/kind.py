"""The kind of dashboards. Their parent is an application, or the user or organization that owns them."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.kind import Kind, Prefixes
from trunkline.store import keys


def _report_times(parent: bytes, dashboard: bytes) -> Prefixes:
    return ((keys.META, keys.report_times_key(parent, dashboard)),)


DASHBOARD: Final = Kind(
    name="dashboard",
    noun="dashboard",
    home="owner",
    owned_keys=_report_times,
    counted_as="dashCount",
    audited_as="Dashboard",
)

AUTHORS: Final = "authors"
"""The field of a record in whose name it is shown to readers without a token (`core/records/mandate.py`)."""

SHOWING: Final = frozenset({"blocks", "contextConfiguration", "public"})
"""The fields by which a dashboard shows something; who last wrote one of them is its author."""
