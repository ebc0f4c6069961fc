"""X.509 certificates in PEM text: read, described, and checked for what must not be in it.

A text that contains a private key is refused before anything parses it, and no error quotes the text. What is between
the certificates of a bundle (`openssl` writes descriptions there) is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso, parse_iso

# A block has no hyphens inside, so the search takes linear time.
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----")
_PRIVATE_KEY: Final = re.compile(r"PRIVATE[ _]KEY", re.IGNORECASE)
_PURPOSES: Final = {
    ExtendedKeyUsageOID.CLIENT_AUTH: "clientAuth",
    ExtendedKeyUsageOID.SERVER_AUTH: "serverAuth",
}
_DETAIL_CHARACTERS_MAX: Final = 1024
_UNREADABLE: Final = (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)

Certificates = Sequence[x509.Certificate]


def read_certificates(text: str, *, field: str) -> tuple[str, Certificates]:
    """The certificates of a PEM text, in its order, after the text with nothing else in it.

    Raises `Invalid` if there is a private key, no certificate, or anything else that is not a certificate.
    """
    if _PRIVATE_KEY.search(text):
        raise Invalid(
            f"{field}: contains a private key, which must stay with its owner; nothing was stored. "
            "Send the certificate alone."
        )
    blocks = list(_BLOCK.finditer(text))
    rest = _BLOCK.sub("", text)
    if not blocks or "-----BEGIN" in rest:
        raise Invalid(
            f"{field}: is not a whole certificate; give PEM text from -----BEGIN CERTIFICATE----- "
            "to -----END CERTIFICATE-----."
        )
    found = []
    for position, block in enumerate(blocks, 1):
        if block[1] != "CERTIFICATE":
            raise Invalid(f"{field}: block {position} is not a certificate; give certificates only.")
        found.append(_read(block[0], f"{field}: block {position}"))
    return "\n".join(block[0] for block in blocks) if rest.strip() else text, found


def _read(block: str, place: str) -> x509.Certificate:
    try:
        certificate = x509.load_pem_x509_certificate(block.encode())
        details = describe(certificate)
        _ = certificate.extensions
    except _UNREADABLE:
        raise Invalid(f"{place} cannot be read as an X.509 certificate; export it again as PEM.") from None
    for name, text in details.items():
        if len(text) > _DETAIL_CHARACTERS_MAX:
            raise Invalid(f"{place} has a {name} of more than {_DETAIL_CHARACTERS_MAX} characters.")
    return certificate


def describe(certificate: x509.Certificate) -> dict[str, str]:
    """The details: serial number and SHA-256 fingerprint in hexadecimal, names, and the validity as ISO 8601 text.

    A name is the common name; the whole name of an issuer that has none, an empty text for a subject.
    """
    return {
        "serialNumber": f"{certificate.serial_number:X}",
        "fingerprint": fingerprint_text(certificate.fingerprint(SHA256())),
        "commonName": _common_name(certificate.subject),
        "issuerName": _common_name(certificate.issuer) or certificate.issuer.rfc4514_string(),
        "notValidBefore": _iso(certificate.not_valid_before_utc),
        "notValidAfter": _iso(certificate.not_valid_after_utc),
    }


def fingerprint_text(digest: bytes) -> str:
    """A fingerprint as it is shown and stored."""
    return digest.hex(":").upper()


def check_not_expired(certificates: Certificates, now_ms: int, *, field: str) -> None:
    """Raise `Invalid` if one of the certificates is not valid any more."""
    for position, certificate in enumerate(certificates, 1):
        end = _iso(certificate.not_valid_after_utc)
        if parse_iso(end) < now_ms:
            raise Invalid(f"{field}: block {position} expired at {end}; give one that is still valid.")


def check_begun(certificates: Certificates, now_ms: int, *, field: str) -> None:
    """Raise `Invalid` if one of the certificates is not valid yet."""
    for position, certificate in enumerate(certificates, 1):
        begin = _iso(certificate.not_valid_before_utc)
        if parse_iso(begin) > now_ms:
            raise Invalid(
                f"{field}: block {position} is not valid before {begin}; give one that is valid already."
            )


def check_purpose(certificate: x509.Certificate, purpose: x509.ObjectIdentifier, *, field: str) -> None:
    """Raise `Invalid` if the certificate says what it is for, and this is not among it."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    except x509.ExtensionNotFound:
        return
    if purpose not in found.value:
        name = _PURPOSES[purpose]
        raise Invalid(
            f"{field}: block 1 is for other purposes than {name}, as its extended key usage says; "
            f"give a certificate that is for {name}."
        )


def check_chain(certificates: Certificates, most: int, *, field: str) -> None:
    """Raise `Invalid` if a certificate was not issued by the one after it, or if there are more than `most`."""
    if len(certificates) > most:
        raise Invalid(
            f"{field}: has {len(certificates)} certificates; give the one of the device with its issuers."
        )
    for position, (certificate, issuer) in enumerate(pairwise(certificates), 2):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            raise Invalid(
                f"{field}: block {position} did not issue the certificate before it; give the certificate of the "
                "device first, then its issuers in order."
            ) from None


def check_authorities(certificates: Certificates, *, field: str) -> None:
    """Raise `Invalid` if one of the certificates may not issue others, or is there twice."""
    seen = set()
    for position, certificate in enumerate(certificates, 1):
        if certificate in seen:
            raise Invalid(f"{field}: block {position} appears twice; give each certificate once.")
        seen.add(certificate)
        if not _is_authority(certificate):
            raise Invalid(
                f"{field}: block {position} is not the certificate of an authority (CA:TRUE); give one that is."
            )


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return _text(found[-1].value) if found else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).hex()


def _iso(time: datetime) -> str:
    return iso(int(time.replace(tzinfo=UTC).timestamp()) * 1000)
