"""The addresses of NATS servers, as URLs without secrets."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

PORT: Final = 4222


class Address(NamedTuple):
    """Where a server listens."""

    host: str
    port: int
    tls: bool

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in a URL such as `nats://host:4222` or `tls://host`. Raises ValueError with a sentence."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("nats", "tls") or not parts.hostname or port == -1:
            raise ValueError(f"{url} is not the address of a NATS server, such as nats://host:{PORT}.")
        if parts.username is not None or parts.path.strip("/") or parts.query:
            raise ValueError(
                f"nats://{parts.hostname}: an address has a host and a port only, no password and no path."
            )
        return cls(parts.hostname, PORT if port is None else port, parts.scheme == "tls")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.tls else 'nats'}://{host}:{self.port}"
