"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.connections import credentials, webhooks

ROUTES: Final = (
    *webhooks.ROUTES,
    *credentials.ROUTES,
)
