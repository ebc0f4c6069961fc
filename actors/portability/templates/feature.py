"""What application templates add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.feature import Feature
from trunkline.actors.portability.templates.apply import APPLY_TEMPLATE, CREATE_FROM_TEMPLATE

FEATURE: Final = Feature(
    jobs=(APPLY_TEMPLATE, CREATE_FROM_TEMPLATE),
)
