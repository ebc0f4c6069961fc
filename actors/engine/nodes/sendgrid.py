"""SendgridEmailNode: sends a mail with HTML by the SendGrid account of its author.

The account is that of the credential `credentialNameTemplate`, or has the key `sendgridApiKey`. `toAddresses`,
`ccAddresses` and `bccAddresses` are lists of templates, each of which may give several addresses between commas; an
address counts once, in the first of these lists. `fromTemplate` is the sender, `replyToTemplate` the address for
answers. `resultPath` gets `{"success": true}`, or `{"error": {"type", "message"}}` if the mail is not accepted; without
`resultPath` that ends the run. Attachments are not sent: a node that has some cannot run.

The key is neither in the payload nor in a record of the run. A run that is repeated after a crash sends the mail again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.outgoing.sendgrid import SendGrid
from trunkline.actors.core.runtime.computing import in_thread
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.engine.bodies import with_error
from trunkline.actors.engine.credentials import credential_of
from trunkline.actors.engine.mail_addresses import addresses_reader, checked
from trunkline.actors.engine.node_rights import WRITES, may_read
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    Config,
    JsonSetting,
    LongTemplateSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import Unusable, needed_text_reader, path_of, text_of, text_reader
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "SendgridEmailNode"

_CREDENTIAL_NAME: Final = TemplateSetting("credentialNameTemplate")
_SENDGRID_API_KEY: Final = TemplateSetting("sendgridApiKey")
_FROM: Final = TemplateSetting("fromTemplate", is_needed=True)
_TO_ADDRESSES: Final = TextsSetting("toAddresses", is_needed=True)
_CC_ADDRESSES: Final = TextsSetting("ccAddresses")
_BCC_ADDRESSES: Final = TextsSetting("bccAddresses")
_REPLY_TO: Final = TemplateSetting("replyToTemplate")
_SUBJECT: Final = TemplateSetting("subjectTemplate", is_needed=True)
_BODY: Final = LongTemplateSetting("bodyTemplate", is_needed=True)
_ATTACHMENTS: Final = JsonSetting("attachments", is_shown=False)
FORM: Final = Form(
    "output",
    (
        _CREDENTIAL_NAME,
        _SENDGRID_API_KEY,
        _FROM,
        _TO_ADDRESSES,
        _CC_ADDRESSES,
        _BCC_ADDRESSES,
        _REPLY_TO,
        _SUBJECT,
        _BODY,
        RESULT,
        _ATTACHMENTS,
    ),
)
NEEDS: Final = (*WRITES, may_read("credential.get", _CREDENTIAL_NAME))

ADDRESSES_MAX: Final = 1_000
"""Addresses of a mail, as the service takes them."""
INLINE_CHARS_MAX: Final = 16_384
"""Characters of a mail that is encoded in the event loop."""

_KEY_BEGINS: Final = "SG."


def prepare(config: Config) -> NodeStep:
    if config[_ATTACHMENTS]:
        raise Unusable("config.attachments: this server sends no attachments; leave them out.")
    lists = [
        (field, addresses_reader(config, setting, lambda _visit: ADDRESSES_MAX))
        for field, setting in (("to", _TO_ADDRESSES), ("cc", _CC_ADDRESSES), ("bcc", _BCC_ADDRESSES))
    ]
    sender, answers_to = needed_text_reader(config, _FROM), text_reader(config, _REPLY_TO)
    subject, body = needed_text_reader(config, _SUBJECT), needed_text_reader(config, _BODY)
    key, result = _key_reader(config), path_of(config, RESULT)

    def step(visit: Visit) -> Any:
        return with_error(visit, result, sent(visit))

    async def sent(visit: Visit) -> dict[str, Any]:
        mail: dict[str, Any] = {
            "personalizations": [_personalization({field: read(visit) for field, read in lists})],
            "from": {"email": checked(sender(visit).strip(), _FROM)},
            "subject": subject(visit),
            "content": [{"type": "text/html", "value": body(visit)}],
        }
        if answers_at := answers_to(visit).strip():
            mail["reply_to"] = {"email": checked(answers_at, _REPLY_TO)}
        proof = key(visit)
        is_long = len(mail["subject"]) + len(mail["content"][0]["value"]) > INLINE_CHARS_MAX
        content: bytes = await in_thread(msgspec.json.encode, mail) if is_long else msgspec.json.encode(mail)
        visit.world.effect("sends a mail")
        try:
            await visit.world.system.component(SendGrid).send(proof, content)
        except Undelivered as problem:
            raise Invalid(f"The mail was not sent: {problem}") from None
        return {"success": True}

    return step


def _personalization(lists: dict[str, list[str]]) -> dict[str, list[dict[str, str]]]:
    """The addressees as the service takes them: none of them twice, and no empty list."""
    seen: set[str] = set()
    shown = {}
    for field, addresses in lists.items():
        new = [each for each in addresses if each.lower() not in seen]
        seen.update(each.lower() for each in new)
        if new:
            shown[field] = [{"email": each} for each in new]
    return shown


def _key_reader(config: Config) -> Callable[[Visit], str]:
    """Reads the API key, of the credential if one is named."""
    if text_of(config, _CREDENTIAL_NAME):
        name = needed_text_reader(config, _CREDENTIAL_NAME)
        return lambda visit: _checked_key(
            credential_of(visit.world, name(visit), "sendgrid")["apiKey"], "credentialNameTemplate"
        )
    if not text_of(config, _SENDGRID_API_KEY):
        raise Unusable("config.credentialNameTemplate: is not set; name a credential of the type sendgrid.")
    given = needed_text_reader(config, _SENDGRID_API_KEY)

    def key(visit: Visit) -> str:
        text = given(visit).strip()
        if not text.startswith(_KEY_BEGINS):
            raise refused(
                f"config.sendgridApiKey: gives no API key of SendGrid, which begins with {_KEY_BEGINS}"
            )
        return _checked_key(text, "sendgridApiKey")

    return key


def _checked_key(key: str, name: str) -> str:
    if not key.strip().isascii() or not key.strip().isprintable():
        raise refused(f"config.{name}: the API key has a character that no key has.")
    return key.strip()
