"""Certificates for TLS from memory: the library reads files only, and no key is to be on a disk."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Let a context use a certificate and its key, both in `pem`.

    Raises SSLError and OSError; an encrypted key is of no use.
    """
    with _file_of(pem) as path:
        context.load_cert_chain(path, password="")


def load_authorities(context: ssl.SSLContext, pem: bytes) -> None:
    """Let a context trust the authorities in `pem`. Raises SSLError and OSError."""
    with _file_of(pem) as path:
        context.load_verify_locations(path)


@contextmanager
def _file_of(pem: bytes) -> Iterator[str]:
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, pem)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
