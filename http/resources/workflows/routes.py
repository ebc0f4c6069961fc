"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.workflows import flow_runs, flow_tests, flows

ROUTES: Final = (
    *flows.ROUTES,
    *flow_runs.ROUTES,
    *flow_tests.ROUTES,
)
