"""A mail has the head that was meant, whatever the texts in it say: read as the bytes that a mail server gets."""

from __future__ import annotations

from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.run_house import run_one, told
from tests.actors.house import running_house
from tests.e2e.receivers import MailServer, listening
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail import Mail, MailMessage
from trunkline.actors.core.outgoing.mail_head import check_address
from trunkline.actors.core.values.errors import Invalid
from trunkline.limits.settings import Settings
from trunkline.store.outbox import Outbox

LINES = "=?utf-8?q?x=0D=0ABcc:_evil@example.com=0D=0AReply-To:_evil@example.com=0D=0A=0D=0ABuy_now?="
BASE64 = "=?utf-8?b?eA0KQmNjOiBldmlsQGV4YW1wbGUuY29t?="
"""An encoded word with a line break and `Bcc: evil@example.com`."""
ATTACKS = [
    LINES,
    BASE64,
    "x\r\nBcc: evil@example.com",
    "x\rBcc: e@example.com",
    "x\u2028y\x00\x0b\x85z",
    "=?",
    "?=",
]
COMMON = ["from", "to", "date", "message-id", "auto-submitted", "subject"]
PARTS = ["content-type", "content-transfer-encoding", "mime-version"]


def names_in_head(raw: bytes) -> list[str]:
    """The names of the lines of a head, each that begins no other line."""
    head = raw.partition(b"\r\n\r\n")[0]
    assert not set(b"\r\n\0") & set(head.replace(b"\r\n", b""))
    lines = [line for line in head.split(b"\r\n") if not line.startswith((b" ", b"\t"))]
    assert all(len(line) <= 998 for line in lines)
    return [line.partition(b":")[0].decode().lower() for line in lines]


def subject_of(raw: bytes) -> str:
    return str(message_from_bytes(raw, policy=policy.default)["Subject"])


async def sent(path: Path, mail: MailMessage) -> bytes:
    """A mail in the outbox, with the line ends that it has on its way."""
    outbox = Outbox.prepare(path / "outbox", 10)
    await Mail(Settings(), outbox, timeout_s=1).send(mail)
    raw = (path / "outbox" / f"{mail.id}.eml").read_bytes()
    assert b"\r" not in raw
    return raw.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("text", ATTACKS)
async def test_a_subject_adds_no_line(tmp_path: Path, text: str) -> None:
    raw = await sent(tmp_path, MailMessage("1", "a@example.com", f"Invitation to {text}", "Hello\n", 0))
    assert sorted(names_in_head(raw)) == sorted([*COMMON, *PARTS])
    assert raw.partition(b"\r\n\r\n")[2] == b"Hello\r\n"


@pytest.mark.parametrize("text", [LINES[:40], "Grüße an alle " * 20, "🌡️ " * 60, "plain words", "a" * 300, ""])
async def test_a_subject_is_read_as_it_was_written(tmp_path: Path, text: str) -> None:
    raw = await sent(tmp_path, MailMessage("1", "a@example.com", text, "Hello\n", 0))
    # An encoded word in it is text: it is encoded itself, so a reader decodes it once.
    assert subject_of(raw) == " ".join(text.split())
    assert all(len(line) <= 78 for line in raw.partition(b"\r\n\r\n")[0].split(b"\r\n"))


@pytest.mark.parametrize(
    "address",
    [
        *(f"{text}@example.com" for text in ATTACKS[:-1]),
        "a@example.com, b@example.com",
        "a@example.com\r\nBcc: b@example.com",
        "Name <a@example.com>",
        '"a\nb"@example.com',
        "a b@example.com",
        f"{'a' * 300}@example.com",
    ],
)
async def test_an_address_is_one_address(tmp_path: Path, address: str) -> None:
    with pytest.raises(Invalid, match="is not an address that a message can be sent to"):
        check_address(address)
    with pytest.raises(Undelivered, match="Mail cannot be sent to this address"):
        await sent(tmp_path, MailMessage("1", address, "Hello", "Hello\n", 0))


@pytest.mark.parametrize("text", [LINES, BASE64, "x\r\nBcc: evil@example.com"])
async def test_a_workflow_sends_to_its_addresses_only(tmp_path: Path, text: str) -> None:
    async with listening(MailServer()) as server:
        settings: dict[str, Any] = {"smtp_host": "127.0.0.1", "smtp_port": server.port, "smtp_tls": "none"}
        async with running_house(tmp_path / "data", **settings) as house:
            config = {
                "toAddresses": ["a@example.com"],
                "subjectTemplate": "{{data.text}}",
                "bodyTemplate": "<b>{{data.text}}</b>",
                "fromTemplate": "answers@example.com",
                "resultPath": "data.result",
            }
            run = await run_one(house, "StructureEmailNode", config, {"text": text})
            assert told(run)["data"]["result"] == {"success": True}
            (mailed,) = await server.number(1)
            assert (mailed.sender, mailed.recipients) == ("trunkline@localhost", ["a@example.com"])
            assert sorted(name.lower() for name in mailed.message.keys()) == sorted(  # noqa: SIM118
                [*COMMON, "reply-to", "content-type", "mime-version"]
            )
            config["fromTemplate"] = "{{data.text}}"
            run = await run_one(house, "StructureEmailNode", config, {"text": text})
            problem = told(run)["data"]["result"]["error"]["message"]
            assert problem.startswith("config.fromTemplate: is not an address")
            assert len(server) == 1
