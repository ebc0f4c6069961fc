"""TLS from files: the server's certificate, its key, and the authorities of client certificates.

Owns the context for new connections and when the files are read: at the start, when they have changed, and at SIGHUP.
Does not own connections: each keeps the context with which it began.

A changed file makes a new context, also because sessions belong to a context: none that began under the earlier
certificate or authorities is resumed, and those clients make a full handshake once. Files with the contents that are
in use already change nothing.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import structlog
import trio
from cryptography import x509
from hypercorn.config import Config

from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

FILES = ("certfile", "keyfile", "ca_certs")
"""Settings that name a file."""

SESSION_TICKETS = 1
"""Tickets after a full handshake. A device needs one for each of its connections, and each has brought one. OpenSSL
would send two: 255 bytes more, and with a client certificate, which a ticket contains, some 800."""

Digests = tuple[bytes | None, ...]
"""One for each of the files: enough to see that one has changed, and no copy of the key."""

_log = structlog.get_logger("trunkline.serve")


class TlsConfig(Config):
    """The configuration of Hypercorn, with the TLS context for new connections."""

    _context: ssl.SSLContext | None = None
    _first: ssl.SSLContext | None = None
    """With which Hypercorn's own engine goes on: it asks once. It gets each new certificate, but no new authorities."""
    _used: Digests = ()
    """Of the files of that context."""
    _refused: Digests = ()
    """Of the files when they were of no use; it is logged once."""
    expires_s: float = math.inf
    """When the first certificate of the chain in use expires, in seconds since 1970; infinite without TLS."""
    authorities: bytes = b""
    """What the file of authorities held when that context was made; nothing without one."""
    context_of: Callable[[str], ssl.SSLContext | None] = staticmethod(lambda _name: None)
    """The context with the certificate for a name; None if that of the files is for it."""

    def use(self, settings: Settings) -> None:
        """Use TLS if there is a certificate. Raises `SettingsError` for unusable files."""
        self.certfile, self.keyfile, self.ca_certs = settings.certfile, settings.keyfile, settings.ca_certs
        # OpenSSL would ask for the password of a key in the terminal, and all else would wait for that.
        self.keyfile_password = ""
        if settings.ca_certs is not None:
            required = settings.client_certificates == "required"
            self.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
        self._used = self._digests()
        self._context = self._first = self._made()
        self.authorities = self._read_authorities()
        self._note_validity()

    def create_ssl_context(self) -> ssl.SSLContext | None:
        """The context for a new connection; None without a certificate."""
        return self._context

    def reload(self) -> None:
        """Use what the files hold now, for new connections. Wrong files change nothing."""
        if self._first is None:
            _log.info("there is no certificate to reload")
            return
        digests = self._digests()
        if digests == self._used:
            _log.info("the certificate is unchanged", certfile=self.certfile)
            return
        try:
            context, authorities = self._made(), self._read_authorities()
            assert context is not None
            assert self.certfile is not None
            self._first.load_cert_chain(self.certfile, self.keyfile, self.keyfile_password)
        except (SettingsError, OSError) as problem:
            self._refused = digests
            _log.error(
                "the certificate cannot be reloaded; the earlier one stays in use", problem=str(problem)
            )
            return
        self._context, self._used, self._refused = context, digests, ()
        self.authorities = authorities
        _log.info("the certificate is reloaded", certfile=self.certfile)
        self._note_validity()

    async def follow(self, interval_s: float) -> None:
        """Reload whenever the files have changed, until cancelled."""
        while self._context is not None:
            await trio.sleep(interval_s)
            # In a thread: the files may be in a file system of the network, which may hang.
            digests = await trio.to_thread.run_sync(self._digests, abandon_on_cancel=True)
            if digests not in (self._used, self._refused):
                self.reload()

    def _made(self) -> ssl.SSLContext | None:
        """A context from the files as they are now. Raises SettingsError."""
        try:
            context = super().create_ssl_context()
        except OSError as error:  # of SSL as well
            raise self._refusal(error) from None
        if context is not None:
            context.num_tickets = SESSION_TICKETS
            context.sni_callback = self._choose
        return context

    def _read_authorities(self) -> bytes:
        return b"" if self.ca_certs is None else Path(self.ca_certs).read_bytes()

    def _refusal(self, error: OSError) -> SettingsError:
        """Which of the files is of no use, and why: OpenSSL does not say that."""
        for key in FILES:
            file = getattr(self, key)
            if file is None:
                continue
            try:
                content = Path(file).read_bytes()
                if key != "keyfile":
                    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(file)
            except ssl.SSLError:
                return SettingsError(
                    key, f"({file}) has no certificate that can be used", "name a PEM file with one"
                )
            except OSError as unread:
                return SettingsError(key, f"({file}) cannot be read: {unread.strerror}", "name a PEM file")
            if key == "keyfile" and b"ENCRYPTED" in content:
                remedy = f"decrypt it: openssl pkey -in {file} -out NEW"
                return SettingsError(key, f"({file}) is encrypted with a passphrase", remedy)
            if key == "keyfile" and b" PRIVATE KEY-----" not in content:
                return SettingsError(key, f"({file}) has no private key", "name a PEM file with one")
        problem = f"({self.keyfile}) cannot be used with certfile ({self.certfile}): {error}"
        return SettingsError("keyfile", problem, "give PEM files that belong together")

    def _note_validity(self) -> None:
        """Note when the chain expires. Clients refuse one that is not valid now, so that is logged."""
        if self.certfile is None:
            return
        try:
            chain = x509.load_pem_x509_certificates(Path(self.certfile).read_bytes())
        except (OSError, ValueError):
            self.expires_s = math.inf  # OpenSSL has taken it all the same
            return
        begins = max(each.not_valid_before_utc for each in chain)
        expires = min(each.not_valid_after_utc for each in chain)
        self.expires_s = expires.timestamp()
        now = datetime.now(UTC)
        if now >= expires:
            _log.warning("the certificate has expired", certfile=self.certfile, at=expires.isoformat())
        elif now < begins:
            _log.warning(
                "the certificate is not valid yet", certfile=self.certfile, before=begins.isoformat()
            )

    def _choose(self, tls: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        """Use the certificate for the name that a client asks for, with the authorities that its context has. The other
        settings are those of the first context."""
        found = None if name is None else self.context_of(name)
        if found is not None:
            tls.context = found

    def _digests(self) -> Digests:
        return tuple(_digest(getattr(self, key)) for key in FILES)


def _digest(file: str | None) -> bytes | None:
    """Of the contents of a file; None for one that there is not or that cannot be read."""
    try:
        return None if file is None else sha256(Path(file).read_bytes()).digest()
    except OSError:
        return None
