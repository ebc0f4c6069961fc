"""What credentials add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.connections.credentials.resource import CREDENTIALS
from trunkline.actors.core.records.feature import Feature

FEATURE: Final = Feature(
    resources=(CREDENTIALS,),
)
