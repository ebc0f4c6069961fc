"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.presentation import dashboard_data, dashboards, experience, notebooks, overview

ROUTES: Final = (
    *overview.ROUTES,
    *experience.ROUTES,
    *dashboards.ROUTES,
    *dashboard_data.ROUTES,
    *notebooks.ROUTES,
)
