"""What a mail server says to a mail: whether it was taken, and why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.receivers import MailServer, listening
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail import Mail, MailMessage
from trunkline.limits.settings import Settings
from trunkline.store.outbox import Outbox


async def send(server: MailServer, tmp_path: Path) -> None:
    settings = Settings(smtp_host="127.0.0.1", smtp_port=server.port, smtp_tls="none")
    mail = Mail(settings, Outbox(tmp_path / "outbox", 10), timeout_s=30)
    await mail.send(MailMessage("1", "a@example.com", "Hello", "Hello\n", 0))


@pytest.mark.parametrize("bye", ["421 closing", "500 what?"])
async def test_a_mail_that_was_taken_is_sent_whatever_is_said_to_the_end(tmp_path: Path, bye: str) -> None:
    async with listening(MailServer(says={"QUIT": bye})) as server:
        await send(server, tmp_path)
        (mailed,) = await server.number(1)
        assert mailed.recipients == ["a@example.com"]


@pytest.mark.parametrize(
    ("verb", "reply", "sentence"),
    [
        ("MAIL", "550 5.7.1 Not you.", "The mail server did not accept the message: 550 5.7.1 Not you."),
        ("DATA", "552-Too\r\n552 large", "The mail server did not accept the message: 552 Too large."),
        ("RCPT", "451 later", "The mail server refused the recipient: 451 later."),
        ("RCPT", "550", "The mail server refused the recipient: 550."),
    ],
)
async def test_a_refusal_says_what_the_server_said(
    tmp_path: Path, verb: str, reply: str, sentence: str
) -> None:
    async with listening(MailServer(says={verb: reply})) as server:
        with pytest.raises(Undelivered) as told:
            await send(server, tmp_path)
        assert str(told.value) == sentence
        assert len(server) == 0
