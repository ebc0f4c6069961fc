"""The certificates of domains: which one a connection over TLS gets, by the name that its client asks for (SNI).

A client that asks for another name gets the certificate of the server. The certificates of clients are verified with
the authorities of the server, whatever name they ask for. Contexts are kept by their contents, so a changed certificate
is used from the next connection on.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from hashlib import sha256

import structlog

from trunkline.actors.core.values.certificate_chain import load_authorities, load_chain

_log = structlog.get_logger("trunkline.experience")


class DomainCertificates:
    """Chooses the certificates of one server. `certificate_of` finds that of a name in lower case, as PEM with its key;
    `protocols` are those of ALPN; `authorities` are those of client certificates, as PEM."""

    def __init__(
        self,
        certificate_of: Callable[[str], str | None],
        protocols: list[str],
        length_max: int,
        authorities: Callable[[], bytes],
    ) -> None:
        self._certificate_of = certificate_of
        self._protocols = protocols
        self._authorities = authorities
        self._length_max = length_max
        self._contexts: dict[bytes, ssl.SSLContext | None] = {}

    def context_of(self, name: str) -> ssl.SSLContext | None:
        """The context with the certificate of a domain; None if the server's own is to be used."""
        name = name.lower()
        pem = self._certificate_of(name)
        if pem is None:
            return None
        authorities = self._authorities()
        # The digest is kept, and no copy of the key.
        digest = sha256(pem.encode() + authorities).digest()
        if digest not in self._contexts:
            if len(self._contexts) >= self._length_max:
                del self._contexts[next(iter(self._contexts))]
            try:
                self._contexts[digest] = self._made(pem, authorities)
            except (ssl.SSLError, OSError) as problem:
                _log.error("the certificate of a domain cannot be used", domain=name, problem=str(problem))
                self._contexts[digest] = None
        return self._contexts[digest]

    def _made(self, pem: str, authorities: bytes) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(self._protocols)
        load_chain(context, pem.encode())
        if authorities:
            load_authorities(context, authorities)
        return context
