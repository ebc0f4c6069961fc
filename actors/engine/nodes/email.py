"""StructureEmailNode: sends a mail with HTML to at most five addresses.

Each of `toAddresses` is a template, which may give several addresses between commas. `fromTemplate` is the address for
answers; the sender is that of the server. `resultPath` gets `{"success": true}`, or `{"error": {"type", "message"}}` if
the mail is not accepted; without `resultPath` that ends the run. An address that the mail server refuses keeps the mail
from no other. A workflow sends `flow_mails_max` mails at once, then one each `flow_mail_interval_s`; one to several
addresses counts as one.

A run that is repeated after a crash sends the mail again under the same name: in the outbox folder that changes
nothing, and a mail server gets the same Message-ID twice.
"""

from __future__ import annotations

from email.message import EmailMessage
from html.parser import HTMLParser
from typing import Any, Final

from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.mail import Mail, MailMessage, RefusedRecipient
from trunkline.actors.core.outgoing.mail_head import head
from trunkline.actors.core.outgoing.mail_policy import MAIL_POLICY
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.core.values.errors import Invalid, Overloaded
from trunkline.actors.engine.bodies import with_error
from trunkline.actors.engine.flow_mails import FlowMails
from trunkline.actors.engine.mail_addresses import addresses_reader, checked
from trunkline.actors.engine.node_rights import WRITES
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    Config,
    LongTemplateSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import needed_text_reader, path_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit

TYPE: Final = "StructureEmailNode"

_TO_ADDRESSES: Final = TextsSetting("toAddresses", is_needed=True)
_SUBJECT: Final = TemplateSetting("subjectTemplate", is_needed=True)
_BODY: Final = LongTemplateSetting("bodyTemplate", is_needed=True)
_FROM: Final = TemplateSetting("fromTemplate")
FORM: Final = Form("output", (_TO_ADDRESSES, _SUBJECT, _BODY, _FROM, RESULT))
NEEDS: Final = WRITES

INLINE_CHARS_MAX: Final = 4_096
"""Characters of a mail that is put together in the event loop."""


def prepare(config: Config) -> NodeStep:
    recipients = addresses_reader(
        config,
        _TO_ADDRESSES,
        lambda visit: visit.world.system.limits.flow_mail_addresses_max,
    )
    subject, body = needed_text_reader(config, _SUBJECT), needed_text_reader(config, _BODY)
    answers_to, result = text_reader(config, _FROM), path_of(config, RESULT)

    def step(visit: Visit) -> Any:
        return with_error(visit, result, _sent(visit))

    async def _sent(visit: Visit) -> dict[str, Any]:
        world, limits = visit.world, visit.world.system.limits
        addresses = recipients(visit)
        if answers_at := answers_to(visit).strip():
            checked(answers_at, _FROM)
        whole = await _made(subject(visit), body(visit), answers_at)
        world.effect("sends a mail")
        wait_s = world.system.component(FlowMails).take(world.flow, world.system.clock.monotonic_s())
        if wait_s:
            raise Overloaded(
                f"This workflow has sent {limits.flow_mails_max} mails; the next one is sent in {wait_s:.0f} seconds "
                "at the earliest."
            )
        name = f"{world.flow.hex()}-{world.key(visit.place)}"
        problems: list[str] = []
        for number, address in enumerate(addresses):
            mail = MailMessage(f"{name}-{number}", address, "", "", visit.run.now_ms, whole)
            try:
                await world.system.component(Mail).send(mail)
            except Undelivered as problem:
                problems.append(f"The mail to {address} was not sent: {problem}")
                if not isinstance(problem, RefusedRecipient):
                    break
        if problems:
            raise Invalid(" ".join(problems))
        return {"success": True}

    return step


async def _made(subject: str, html: str, answers_to: str) -> bytes:
    if len(subject) + len(html) <= INLINE_CHARS_MAX:
        return _message(subject, html, answers_to)
    whole: bytes = await in_thread(_message, subject, html, answers_to)
    return whole


def _message(subject: str, html: str, answers_to: str) -> bytes:
    """The mail without its addressees."""
    message = EmailMessage(policy=MAIL_POLICY)
    plain = _Text()
    plain.feed(html)
    plain.close()
    message.set_content("".join(plain.pieces).strip() + "\n")
    message.add_alternative(html, subtype="html")
    reply = f"Reply-To: {answers_to}\r\n".encode() if answers_to else b""
    return head([("Subject", subject)]) + reply + message.as_bytes()


class _Text(HTMLParser):
    """The text of HTML, for programs that show no HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in ("script", "style")
        if tag in ("br", "p", "div", "tr", "li", "h1", "h2", "h3", "table"):
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in ("script", "style")))

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)
