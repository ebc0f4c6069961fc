"""The address of a webhook: the token in it, and finding the webhook of a token.

A token consists of the ids of the application and of the webhook, which say where the record is, and of 192 bits that
nobody can guess, as they follow from the ids by a secret of the server. So an import knows the token of a webhook
before it has created it. A token is a secret: who knows it may call the webhook.
"""

from __future__ import annotations

import hmac
import re
from typing import Final

from trunkline.actors.connections.webhooks.kind import WEBHOOK
from trunkline.actors.core.contents.signatures import Signatures
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import NotFound
from trunkline.store.snapshot import Snapshot

_TOKEN: Final = re.compile(r"([0-9a-f]{24})([0-9a-f]{24})[0-9A-Za-z_-]{32}")


def new_token(signatures: Signatures, application: bytes, webhook: bytes) -> str:
    """The token of a new webhook: 80 characters."""
    return f"{(application + webhook).hex()}{signatures.webhook_secret(application, webhook)}"


def find_webhook(snapshot: Snapshot, token: str) -> tuple[Ref, Doc]:
    """The actor and the record of the webhook with this token. Raises `NotFound`, which does not say what is wrong."""
    parts = _TOKEN.fullmatch(token)
    if parts is not None:
        application, id = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
        found = records.find(snapshot, WEBHOOK, application, id)
        if found is not None and hmac.compare_digest(str(found.doc["token"]), token):
            return Ref("webhook", application, id), found.doc
    raise NotFound("There is no webhook at this address.")
