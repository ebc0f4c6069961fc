"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.platform import (
    application_contents,
    applications,
    clones,
    jobs,
    platform,
    server,
)

ROUTES: Final = (
    *platform.ROUTES,
    *server.ROUTES,
    *applications.ROUTES,
    *application_contents.ROUTES,
    *jobs.ROUTES,
    *clones.ROUTES,
)
