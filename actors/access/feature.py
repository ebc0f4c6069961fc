"""What certificates add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.actors.access.author_rights import rights_of
from trunkline.actors.access.certificate_login import AdmitCertificate, admit_certificate
from trunkline.actors.access.certificates import AUTHORITIES, CERTIFICATES
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.portable import portable
from trunkline.actors.people.organizations.mandates import Authors


def _parts(start: Start) -> Iterator[object]:
    yield Authors(start.system, rights_of)


FEATURE: Final = Feature(
    parts=_parts,
    resources=(CERTIFICATES, AUTHORITIES),
    readers={AdmitCertificate: admit_certificate},
    portable=(
        portable(
            "ApplicationCertificateAuthority",
            AUTHORITIES,
            created_by="applicationCertificateAuthorities.post",
        ),
    ),
)
