"""The certificate and the key of a domain: whether they fit each other and the name of the domain.

Owns the checks. They never quote the key, and no error of the library is shown, because it might.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from trunkline.actors.core.runtime.threads import SHORT, in_thread
from trunkline.actors.core.values.certificates import check_not_expired, read_certificates
from trunkline.actors.core.values.errors import Invalid

_RSA_BITS_MIN: Final = 2048


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
        return key.public_key()
    raise Invalid("sslKey: is of a kind that browsers do not accept; give an RSA or an elliptic curve key.")


def _fingerprint(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def check_certificate(text: str, fingerprint: str, domain: str, now_ms: int | None) -> None:
    """Raise `Invalid` unless the first certificate of a PEM text is for this key and this domain.

    `now_ms` is the time at which it must be valid; None for a certificate that was accepted before.
    """
    _, (certificate, *issuers) = read_certificates(text, field="sslCert")
    if now_ms is not None:
        check_not_expired([certificate, *issuers], now_ms, field="sslCert")
    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) or _fingerprint(key) != fingerprint:
        raise Invalid(
            "sslCert: does not belong to sslKey; give the certificate that was issued for this key."
        )
    names = _names(certificate)
    if not any(_covers(name.lower(), domain) for name in names):
        shown = ", ".join(names[:10]) or "no domain"
        raise Invalid(f"sslCert: is for {shown[:200]}, not for {domain}; give one that names the domain.")


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
