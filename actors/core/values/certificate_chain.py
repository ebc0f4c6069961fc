"""A certificate with its key for TLS, from memory: the library reads files only, and no key is to be on a disk."""

from __future__ import annotations

import os
import ssl


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Let a context use a certificate and its key, both in `pem`.

    Raises SSLError and OSError; an encrypted key is of no use.
    """
    file = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}", password="")
    finally:
        os.close(file)
