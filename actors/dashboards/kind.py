"""The kind of dashboards. Their parent is an application, or the user or organization that owns them."""

from __future__ import annotations

from typing import Final

from trunkline.actors.records.kind import Kind

DASHBOARD: Final = Kind(name="dashboard", noun="dashboard", home="owner", counted_as="dashCount")
