"""Certificates for tests: made when they are needed, so that none expires and no key is in the repository."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Issued(NamedTuple):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The key as text."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def issue(
    common_name: str | None,
    issuer: Issued | None = None,
    *,
    ca: bool = False,
    days: tuple[int, int] = (-1, 30),
    names: Sequence[str] = (),
    purposes: Sequence[x509.ObjectIdentifier] = (),
    key: Key | None = None,
) -> Issued:
    """A new certificate, signed by itself without `issuer`. It is valid between two days, counted from now.

    `names` are domains; `purposes` are those of the extended key usage, any without one.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    common = [] if common_name is None else [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    name = x509.Name([*common, x509.NameAttribute(NameOID.ORGANIZATION_NAME, "farm")])
    now = datetime.now(UTC)
    usages = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=ca,
        crl_sign=ca,
        decipher_only=False,
        **dict.fromkeys(usages, False),
    )
    signed_by = x509.SubjectKeyIdentifier.from_public_key(
        (key if issuer is None else issuer.key).public_key()
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        # Python 3.13 trusts no certificate without these.
        .add_extension(x509.AuthorityKeyIdentifier(signed_by.digest, None, None), critical=False)
        .add_extension(usage, critical=True)
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = builder.add_extension(alternative, critical=False)
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return Issued(builder.sign(key if issuer is None else issuer.key, SHA256()), key)


def make_certificate(common_name: str, *, ca: bool = False) -> str:
    """The text of a new certificate that signed itself."""
    return issue(common_name, ca=ca).pem
