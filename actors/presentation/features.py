"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.presentation.dashboards.feature import FEATURE as DASHBOARDS
from trunkline.actors.presentation.experience.feature import FEATURE as EXPERIENCE
from trunkline.actors.presentation.notebooks.feature import FEATURE as NOTEBOOKS
from trunkline.actors.presentation.overview.feature import FEATURE as OVERVIEW

FEATURES: Final = (
    OVERVIEW,
    EXPERIENCE,
    DASHBOARDS,
    NOTEBOOKS,
)
