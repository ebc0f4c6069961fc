"""What each package of the wing adds, in the order of the packages, and the links between them."""

from __future__ import annotations

from typing import Final

from trunkline.actors.connections.credential_links import GetLinkedResources, get_linked_resources
from trunkline.actors.connections.credentials.feature import FEATURE as CREDENTIALS
from trunkline.actors.connections.integrations.feature import FEATURE as INTEGRATIONS
from trunkline.actors.connections.webhooks.feature import FEATURE as WEBHOOKS
from trunkline.actors.core.records.feature import Feature

FEATURES: Final = (
    CREDENTIALS,
    INTEGRATIONS,
    WEBHOOKS,
    Feature(readers={GetLinkedResources: get_linked_resources}),
)
