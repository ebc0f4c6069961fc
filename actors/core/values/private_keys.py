"""Private keys in PEM or OpenSSH text: made, and read to find their public key. No error quotes a text."""

from __future__ import annotations

from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from trunkline.actors.core.values.errors import Invalid

_RSA_BITS: Final = 2048
_OPENSSH: Final = "-----BEGIN OPENSSH PRIVATE KEY-----"
_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm)


def new_rsa_key() -> str:
    """A new RSA key of 2048 bits, as PEM. It takes a tenth of a second, at times a second."""
    key = rsa.generate_private_key(65537, _RSA_BITS)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def new_ssh_key() -> str:
    """A new Ed25519 key in the form of OpenSSH."""
    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def read_private_key(text: str, *, field: str, only_pem: bool = False) -> Any:
    """The private key of a text. Raises `Invalid` for `field` if there is none, or if it needs a passphrase.

    `only_pem` is for TLS, whose library does not read the form of OpenSSH.
    """
    is_openssh = text.lstrip().startswith(_OPENSSH)
    load: Any = load_ssh_private_key if is_openssh else _load_pem
    try:
        if not (is_openssh and only_pem):
            return load(text.encode(), None)
    except _UNREADABLE:
        pass
    form = "PEM" if only_pem else "PEM or OpenSSH"
    raise Invalid(f"{field}: cannot be read as a private key; give {form} text without a passphrase.")


def _load_pem(text: bytes, password: None) -> Any:
    # Only the public key is read from it, so the slow check of the numbers of an RSA key is left out.
    return load_pem_private_key(text, password, unsafe_skip_rsa_key_validation=True)


def public_pem(key: Any) -> str:
    """The public key of a private key, as PEM."""
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def public_ssh(key: Any, *, field: str) -> str:
    """The public key of a private key in the form of OpenSSH. Raises `Invalid` for kinds of keys that it lacks."""
    try:
        return str(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())
    except _UNREADABLE:
        raise Invalid(
            f"{field}: OpenSSH does not know this kind of key; give an Ed25519, ECDSA or RSA key."
        ) from None
