"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.fleet import (
    bulk_devices,
    deployments,
    device_link,
    devices,
    exports,
    measurements,
    recipes,
    streams,
)

ROUTES: Final = (
    *streams.ROUTES,
    *devices.ROUTES,
    *device_link.ROUTES,
    *bulk_devices.ROUTES,
    *measurements.ROUTES,
    *exports.ROUTES,
    *deployments.ROUTES,
    *recipes.ROUTES,
)
