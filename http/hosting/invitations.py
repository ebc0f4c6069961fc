"""Invitations of machines that do not have the secret of a server yet: each is a secret of its own, used once.

Owns who is let in by one: whoever names it in the hello of TLS, and has its key. Does not own what such a machine is
given (`processes/machine_joining.py`). Invitations are in the memory of the process that has made them.
"""

from __future__ import annotations

import hashlib
import secrets
import ssl
import time
from typing import Final

from trunkline.http.hosting.machine_tls import Contexts, contexts_of

VALID_S: Final = 600.0
LENGTH_MAX: Final = 16
"""Open invitations; further ones replace the oldest."""
_SECRET_BYTES: Final = 20
_DOMAIN: Final = "invitation.trunkline.invalid"


def name_of(secret: str) -> str:
    """The name by which the machine that has an invitation asks for it, from which nobody finds the secret."""
    digest = hashlib.blake2b(secret.encode(), digest_size=8, person=b"invitation name").hexdigest()
    return f"{digest}.{_DOMAIN}"


def invited_contexts(secret: str, protocol: str) -> Contexts:
    """The contexts of the two machines that know an invitation."""
    key = hashlib.blake2b(secret.encode(), digest_size=32, person=b"invitation key").digest()
    return contexts_of(key, protocol, name_of(secret))


class Invitations:
    """The invitations of a machine that serves, whose other connections have the context `server`."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._open: dict[str, tuple[ssl.SSLContext, float]] = {}
        """By name, the context and until when it is valid, on the clock of the process."""

    def made(self) -> str:
        """The secret of a new one."""
        secret = secrets.token_hex(_SECRET_BYTES)
        while len(self._open) >= LENGTH_MAX:
            del self._open[next(iter(self._open))]
        contexts = invited_contexts(secret, self._protocol)
        self._open[name_of(secret)] = contexts.server, time.monotonic() + VALID_S
        return secret

    def choose(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        """Let a connection whose hello names an invitation have its context (`ssl.SSLContext.sni_callback`)."""
        context, until_s = self._open.get(name or "", (None, 0.0))
        if context is not None and time.monotonic() < until_s:
            connection.context = context

    def take(self, context: ssl.SSLContext) -> bool:
        """Whether a connection with this context is that of an invitation, which is used up then."""
        for name, (each, _) in self._open.items():
            if each is context:
                del self._open[name]
                return True
        return False
