"""Routes: certificates of devices, and the authorities that issue them."""

from __future__ import annotations

from trunkline.actors.access.certificates import AUTHORITIES, CERTIFICATES
from trunkline.http.calls.resource_routes import resource_routes
from trunkline.http.calls.route import APP_PATH

ROUTES = (
    *resource_routes(APP_PATH + "/certificates", CERTIFICATES),
    *resource_routes(
        APP_PATH + "/certificate-authorities", AUTHORITIES, many="applicationCertificateAuthorities"
    ),
)
