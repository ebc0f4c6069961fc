"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.portability import application_templates, archives, bundles, imports

ROUTES: Final = (
    *bundles.ROUTES,
    *imports.ROUTES,
    *archives.ROUTES,
    *application_templates.ROUTES,
)
