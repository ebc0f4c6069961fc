"""What webhooks add to the server."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from trunkline.actors.connections.webhooks.actor import Webhook
from trunkline.actors.connections.webhooks.alexa import AlexaCertificates
from trunkline.actors.connections.webhooks.connections import WebhookConnections
from trunkline.actors.connections.webhooks.resource import WEBHOOKS
from trunkline.actors.core.outgoing.http_calls import get_public
from trunkline.actors.core.records.feature import Feature, Start
from trunkline.actors.core.records.portable import WithSecrets, portable

_CERTIFICATE_BYTES_MAX: Final = 64 * 1024
"""Bytes of a chain of certificates, which has about 6 KiB."""


def _parts(start: Start) -> Iterator[object]:
    limits = start.system.limits
    fetch = partial(get_public, timeout_s=limits.outgoing_timeout_s, bytes_max=_CERTIFICATE_BYTES_MAX)
    yield WebhookConnections(start.system)
    yield AlexaCertificates(fetch, limits)


FEATURE: Final = Feature(
    parts=_parts,
    tasks=(WebhookConnections,),
    moved=(WebhookConnections,),
    resources=(WEBHOOKS,),
    actors=(Webhook,),
    portable=(
        # The code that verifies calls may be the token of an account, such as that of Twilio.
        portable(
            "Webhook",
            WEBHOOKS,
            created_by="webhooks.post",
            secrets=frozenset({"verificationCode"}),
            more=WithSecrets,
        ),
    ),
)
