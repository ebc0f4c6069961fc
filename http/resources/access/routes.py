"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.access import certificates

ROUTES: Final = (*certificates.ROUTES,)
