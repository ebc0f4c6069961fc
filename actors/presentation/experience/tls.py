"""The certificate and the key of a domain: whether they fit each other and the name of the domain, and are of use.

Owns the checks. They never quote the key, and no error of the library is shown, because it might.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import islice
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.certificates import (
    check_begun,
    check_not_expired,
    check_purpose,
    read_certificates,
)
from trunkline.actors.core.values.errors import Invalid

_RSA_BITS_MIN: Final = 2048
_CURVES: Final = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}
"""With which TLS 1.3 signs."""
_CURVE_BITS_MIN: Final = 224
_ISSUERS_TRIED_MAX: Final = 10
"""Certificates of a bundle that have the name of the issuer: one or two, each half a millisecond in a turn."""


async def check_key(text: str) -> None:
    """Check a private key completely, in a worker thread: the primes of an RSA key take up to half a second.

    Raises `Invalid`.
    """
    await in_thread(SHORT, _load, text, False)


def key_fingerprint(text: str) -> str:
    """The fingerprint of the public half of a private key that was checked. Raises `Invalid`."""
    return _fingerprint(_load(text, True))


def _load(text: str, checked: bool) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    try:
        key = load_pem_private_key(text.encode(), None, unsafe_skip_rsa_key_validation=checked)
    except TypeError:
        raise Invalid("sslKey: is protected by a password; give the key without one.") from None
    except (ValueError, UnsupportedAlgorithm):
        raise Invalid("sslKey: is not a private key; give the whole PEM text of one.") from None
    if isinstance(key, rsa.RSAPrivateKey):
        if key.key_size < _RSA_BITS_MIN:
            raise Invalid(f"sslKey: has {key.key_size} bits; an RSA key has at least {_RSA_BITS_MIN}.")
        return key.public_key()
    if isinstance(key, ec.EllipticCurvePrivateKey):
        if key.curve.name not in _CURVES:
            raise Invalid(
                f"sslKey: is of the curve {key.curve.name}, which browsers do not accept; "
                f"give one of {', '.join(_CURVES.values())}."
            )
        return key.public_key()
    raise Invalid("sslKey: is of a kind that browsers do not accept; give an RSA or an elliptic curve key.")


def _fingerprint(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def check_certificate(text: str, fingerprint: str, domain: str) -> None:
    """Raise `Invalid` unless the first certificate of a PEM text is for this key and this domain."""
    _, (certificate, *_issuers) = read_certificates(text, field="sslCert")
    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) or _fingerprint(key) != fingerprint:
        raise Invalid(
            "sslCert: does not belong to sslKey; give the certificate that was issued for this key."
        )
    names = _names(certificate)
    if not any(_covers(name.lower(), domain) for name in names):
        shown = ", ".join(names[:10]) or "no domain"
        raise Invalid(f"sslCert: is for {shown[:200]}, not for {domain}; give one that names the domain.")


def check_chain(certificate_text: str, bundle_text: str | None, now_ms: int) -> None:
    """Raise `Invalid` for a certificate with issuers that no client could accept at this time."""
    _, given = read_certificates(certificate_text, field="sslCert")
    _, bundle = ("", []) if bundle_text is None else read_certificates(bundle_text, field="sslBundle")
    certificate, *issuers = *given, *bundle
    check_purpose(certificate, ExtendedKeyUsageOID.SERVER_AUTH, field="sslCert")
    for field, certificates in (("sslCert", given), ("sslBundle", bundle)):
        check_not_expired(certificates, now_ms, field=field)
        check_begun(certificates, now_ms, field=field)
        for position, each in enumerate(certificates, 1):
            _check_strength(each, f"{field}: block {position}")
    if issuers and not _is_issued_by_one_of(certificate, issuers):
        field = "sslCert" if bundle_text is None else "sslBundle"
        raise Invalid(
            f"{field}: no other certificate in it has issued the certificate of the domain; "
            "give the intermediate certificates that came with it."
        )


def _check_strength(certificate: x509.Certificate, place: str) -> None:
    """Refuse what TLS itself would refuse when the certificate is to be used."""
    try:
        key, hashed = certificate.public_key(), certificate.signature_hash_algorithm
    except (ValueError, UnsupportedAlgorithm):
        raise Invalid(f"{place} has a key or a signature of a kind that TLS does not accept.") from None
    if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        bits_min = _RSA_BITS_MIN if isinstance(key, rsa.RSAPublicKey) else _CURVE_BITS_MIN
        if key.key_size < bits_min:
            raise Invalid(
                f"{place} has a key of {key.key_size} bits, which TLS does not accept; "
                f"give one of {bits_min} bits or more."
            )
    # The signature of a root by itself is checked by nobody.
    if isinstance(hashed, hashes.SHA1 | hashes.MD5) and certificate.issuer != certificate.subject:
        raise Invalid(
            f"{place} is signed with {hashed.name.upper()}, which TLS does not accept; "
            "give one with SHA-256 or better."
        )


def _is_issued_by_one_of(certificate: x509.Certificate, issuers: Sequence[x509.Certificate]) -> bool:
    named = (each for each in issuers if each.subject == certificate.issuer)
    for issuer in islice(named, _ISSUERS_TRIED_MAX):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
        return True
    return False


def _names(certificate: x509.Certificate) -> list[str]:
    """The domains of a certificate. Its common name does not count, as in browsers."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return found.value.get_values_for_type(x509.DNSName)


def _covers(name: str, domain: str) -> bool:
    """Whether a name in a certificate stands for a domain; `*.` stands for one label."""
    return name == domain or (name.startswith("*.") and name[2:] == domain.partition(".")[2])
