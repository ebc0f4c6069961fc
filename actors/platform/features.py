"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.platform.applications.feature import FEATURE as APPLICATIONS
from trunkline.actors.platform.jobs.feature import FEATURE as JOBS

FEATURES: Final = (
    JOBS,
    APPLICATIONS,
)
