"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.workflows.flows.feature import FEATURE as FLOWS
from trunkline.actors.workflows.triggers.feature import FEATURE as TRIGGERS

FEATURES: Final = (
    FLOWS,
    TRIGGERS,
)
