"""What webhooks add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.connections.webhooks.actor import Webhook
from trunkline.actors.connections.webhooks.resource import WEBHOOKS
from trunkline.actors.core.records.feature import Feature

FEATURE: Final = Feature(
    resources=(WEBHOOKS,),
    actors=(Webhook,),
)
