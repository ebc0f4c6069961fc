"""Mutual TLS between the machines of one server: certificates that each makes by itself, from the secret of all.

Owns who is let in: whoever has the secret. The key of the authority is found from it, so nobody distributes or renews
certificates; a new secret replaces them all. Does not own the connections (`processes/machine_port.py`).

Only TLS 1.3. The certificates never expire: clocks of machines may differ, and the key of each lasts as long as its
process.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from trunkline.actors.core.values.certificate_chain import load_chain

NAME: Final = "machine.trunkline.invalid"
"""The name in the certificates of all machines. They differ by their keys only."""
_AUTHORITY: Final = "authority.trunkline.invalid"
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""That of a certificate that does not expire (RFC 5280, 4.1.2.5)."""


class Contexts(NamedTuple):
    """Those of a machine: for connections from other machines, and for its own ones to them."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def contexts_of(key: bytes, protocol: str, name: str = NAME) -> Contexts:
    """The contexts of a machine whose authority has the private key `key` (32 bytes). `name` is that of the server.

    `protocol` is the one of ALPN; there is no connection between machines that speak different ones.
    """
    authority = Ed25519PrivateKey.from_private_bytes(key)
    own = Ed25519PrivateKey.generate()
    root = _certificate(_AUTHORITY, authority.public_key(), authority, is_authority=True)
    pem = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem += _certificate(name, own.public_key(), authority, is_authority=False)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=root.decode())
        context.set_alpn_protocols([protocol])
        load_chain(context, pem)
    return Contexts(server, client)


def _certificate(
    name: str, subject: Ed25519PublicKey, authority: Ed25519PrivateKey, *, is_authority: bool
) -> bytes:
    """A certificate as PEM, signed by the authority."""
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY)]))
        .public_key(subject)
        .serial_number(1 if is_authority else x509.random_serial_number())
        .not_valid_before(_BEGINNING)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), True)
        .add_extension(usage, True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(subject), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), False)
        .sign(authority, None)
    )
    return certificate.public_bytes(Encoding.PEM)
