"""What integrations add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.connections.integrations.actor import Integration
from trunkline.actors.connections.integrations.resource import INTEGRATIONS
from trunkline.actors.core.records.feature import Feature

FEATURE: Final = Feature(
    resources=(INTEGRATIONS,),
    actors=(Integration,),
)
