"""What certificates add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.access.certificate_login import AdmitCertificate, admit_certificate
from trunkline.actors.access.certificates import AUTHORITIES, CERTIFICATES
from trunkline.actors.core.records.feature import Feature

FEATURE: Final = Feature(
    resources=(CERTIFICATES, AUTHORITIES),
    readers={AdmitCertificate: admit_certificate},
)
