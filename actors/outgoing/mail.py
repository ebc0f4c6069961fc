"""Mail: a message, and the way out: a mail server where one is set, else the outbox folder.

Owns the form of a message and one attempt to hand it over. When, how often, and what it says is for
`jobs/notifications.py`. The standard library's client runs in a worker thread, since it waits for the network.
"""

from __future__ import annotations

import smtplib
import ssl
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import NamedTuple

import trio

from trunkline.actors.outgoing.http_calls import Undelivered
from trunkline.actors.values.errors import Invalid
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings
from trunkline.store.errors import StoreError
from trunkline.store.outbox import Outbox


class Letter(NamedTuple):
    """A message to one person. `id` makes a second delivery of it known as such."""

    id: str
    to: str
    subject: str
    text: str
    sent_ms: int


class Mail:
    """Hands letters over, as the settings say. Raises `SettingsError` for a password file that is not there."""

    def __init__(self, settings: Settings, outbox: Outbox, *, timeout_s: float) -> None:
        self._settings = settings
        self._outbox = outbox
        self._timeout_s = timeout_s
        self._password = _password(settings)

    async def send(self, letter: Letter) -> None:
        """Hand a letter over. Raises `Undelivered` with a sentence where it was not taken."""
        message = self._message(letter)
        if self._settings.smtp_host is None:
            try:
                await trio.to_thread.run_sync(self._outbox.put, letter.id, message.as_bytes())
            except StoreError as failure:
                raise Undelivered(str(failure)) from None
            return
        with trio.move_on_after(3 * self._timeout_s) as patience:
            # Left behind where the server stops: the next start sends it again.
            await trio.to_thread.run_sync(self._hand_over, message, abandon_on_cancel=True)
        if patience.cancelled_caught:
            raise Undelivered(f"The mail server did not take it within {3 * self._timeout_s:g} seconds.")

    def _message(self, letter: Letter) -> EmailMessage:
        settings = self._settings
        message = EmailMessage()
        try:
            message["From"] = settings.smtp_from
            message["To"] = Address(addr_spec=letter.to)
            message["Subject"] = " ".join(letter.subject.split())
        except (ValueError, IndexError, HeaderParseError) as error:
            raise Undelivered(f"The address can not be written to: {error}.") from None
        message["Date"] = format_datetime(datetime.fromtimestamp(letter.sent_ms / 1000, UTC))
        message["Message-ID"] = f"<{letter.id}@{settings.smtp_from.rpartition('@')[2].rstrip('>')}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter.text)
        return message

    def _hand_over(self, message: EmailMessage) -> None:
        settings = self._settings
        assert settings.smtp_host is not None
        try:
            with self._connected(settings.smtp_host, settings.smtp_port) as server:
                if settings.smtp_tls == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if settings.smtp_user is not None:
                    server.login(settings.smtp_user, self._password)
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as refusal:
            code, said = next(iter(refusal.recipients.values()))
            raise Undelivered(f"The mail server refused the recipient: {code} {_text(said)}.") from None
        except smtplib.SMTPAuthenticationError as refusal:
            raise Undelivered(f"The mail server refused the log-in: {refusal.smtp_code}.") from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise Undelivered(f"The mail server did not take it: {str(error).rstrip('.')}.") from None

    def _connected(self, host: str, port: int) -> smtplib.SMTP:
        if self._settings.smtp_tls == "tls":
            return smtplib.SMTP_SSL(host, port, timeout=self._timeout_s, context=ssl.create_default_context())
        return smtplib.SMTP(host, port, timeout=self._timeout_s)


def check_address(text: str) -> None:
    """Raise `Invalid` where `text` is no address that a message can be sent to."""
    try:
        Address(addr_spec=text)
    except (ValueError, IndexError, HeaderParseError):
        raise Invalid(
            "email: is not an address that a message can be sent to, such as somebody@example.com."
        ) from None


def _password(settings: Settings) -> str:
    if settings.smtp_password_file is None:
        return settings.smtp_password or ""
    try:
        return Path(settings.smtp_password_file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            "smtp_password_file", f"can not be read: {error}", "name a file that holds the password"
        ) from None


def _text(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:200].rstrip(".")
