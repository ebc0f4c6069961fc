"""What topics add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.data.topics.actor import Publisher

FEATURE: Final = Feature(
    actors=(Publisher,),
)
