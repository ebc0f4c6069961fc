"""Mail: sends messages through a mail server if one is configured, else stores them in the outbox folder.

Owns the format of a message and one attempt to deliver it. Does not own its text (`platform/jobs/notifications.py`),
nor when and how often delivery is attempted (`platform/jobs/runner.py`). The client of the standard library runs in a
worker thread, since it waits for the network.
"""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr, parseaddr
from pathlib import Path
from typing import NamedTuple

import structlog
import trio

from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail_head import head, is_address
from trunkline.actors.core.outgoing.mail_policy import MAIL_POLICY
from trunkline.actors.core.runtime.threads import MAILS, in_thread
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store.errors import StoreError, StoreFull
from trunkline.store.outbox import Outbox

_log = structlog.get_logger("trunkline.mail")


class RefusedRecipient(Undelivered):
    """The mail server takes no mail for this address now; it may take others."""


class MailMessage(NamedTuple):
    """A message to one person. `id` becomes part of the Message-ID, by which a repeated delivery can be recognized.

    `whole` is a message with its subject and its parts, which is sent instead of `subject` and `text`: its head comes
    from `mail_head.head`, and has none of the lines that are added here. Nothing in it says whom it is sent to.
    """

    id: str
    to: str
    subject: str
    text: str
    sent_ms: int
    whole: bytes | None = None


class Mail:
    """Sends mail as configured. Raises `SettingsError` if the password file cannot be read."""

    def __init__(self, settings: Settings, outbox: Outbox, *, timeout_s: float) -> None:
        self._settings = settings
        self._outbox = outbox
        self._timeout_s = timeout_s
        self._password = _password(settings)
        name, self._sender = parseaddr(settings.smtp_from)
        self._from = formataddr((name, self._sender)) if self._sender.isascii() else self._sender

    async def send(self, mail: MailMessage) -> None:
        """Deliver a message. Raises `Undelivered` with a sentence if it was not accepted."""
        if not is_address(mail.to):
            raise Undelivered(
                f"Mail cannot be sent to this address: {mail.to[:100]!r} is not a single address."
            )
        message = self._written(mail)
        if self._settings.smtp_host is None:
            try:
                file = message.replace(b"\r\n", b"\n")  # as other texts of this system
                await in_thread(MAILS, self._outbox.put, mail.id, file)
            except StoreError as failure:
                _log.error("mail cannot be written", reason=str(failure))
                why = "its disk is full" if isinstance(failure, StoreFull) else "its log says why"
                raise Undelivered(f"The server could not write it to its outbox: {why}.") from None
            return
        with trio.move_on_after(3 * self._timeout_s) as timeout:
            # Abandoned when the server stops; it is sent again after the next start.
            await in_thread(MAILS, self._deliver, mail.to, message, abandons=True)
        if timeout.cancelled_caught:
            raise Undelivered(
                f"The mail server did not accept the message within {3 * self._timeout_s:g} seconds."
            )

    def _written(self, mail: MailMessage) -> bytes:
        """The message as it is sent."""
        content = mail.whole
        if content is None:
            message = EmailMessage(policy=MAIL_POLICY)
            message.set_content(mail.text)
            content = head([("Subject", mail.subject)]) + message.as_bytes()
        lines = [
            ("Date", format_datetime(datetime.fromtimestamp(mail.sent_ms / 1000, UTC))),
            ("Auto-Submitted", "auto-generated"),
        ]
        # Addresses and ids are checked and stand as they are: they must not be encoded.
        domain = self._sender.rpartition("@")[2]
        addresses = f"From: {self._from}\r\nTo: {mail.to}\r\nMessage-ID: <{mail.id}@{domain}>\r\n"
        return addresses.encode() + head(lines) + content

    def _deliver(self, to: str, message: bytes) -> None:
        settings = self._settings
        assert settings.smtp_host is not None
        try:
            server = self._connected(settings.smtp_host, settings.smtp_port)
            try:
                if settings.smtp_tls == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if settings.smtp_user is not None:
                    server.login(settings.smtp_user, self._password)
                wide = () if (self._sender + to).isascii() else ("SMTPUTF8", "BODY=8BITMIME")
                server.sendmail(self._sender, [to], message, mail_options=wide)
            finally:
                _leave(server)
        except smtplib.SMTPRecipientsRefused as refusal:
            said = _said(*next(iter(refusal.recipients.values())))
            raise RefusedRecipient(f"The mail server refused the recipient: {said}.") from None
        except smtplib.SMTPAuthenticationError as refusal:
            raise Undelivered(f"The mail server refused the login: {refusal.smtp_code}.") from None
        except smtplib.SMTPResponseException as refusal:
            said = _said(refusal.smtp_code, refusal.smtp_error)
            raise Undelivered(f"The mail server did not accept the message: {said}.") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise Undelivered(
                f"The mail server did not accept the message: {str(error).rstrip('.')}."
            ) from None

    def _connected(self, host: str, port: int) -> smtplib.SMTP:
        if self._settings.smtp_tls == "tls":
            return smtplib.SMTP_SSL(host, port, timeout=self._timeout_s, context=ssl.create_default_context())
        return smtplib.SMTP(host, port, timeout=self._timeout_s)


def _password(settings: Settings) -> str:
    if settings.smtp_password_file is None:
        return settings.smtp_password or ""
    try:
        return Path(settings.smtp_password_file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            "smtp_password_file", f"cannot be read: {error}", "name a file that holds the password"
        ) from None


def _leave(server: smtplib.SMTP) -> None:
    """End a session. Whatever the server says to that, it has taken the mail, or has not."""
    with suppress(smtplib.SMTPException, OSError):
        server.quit()
    server.close()


def _said(code: int, reply: bytes | str) -> str:
    """A reply of the server, without a period."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {' '.join(text.split())[:200]}".rstrip(" .")
