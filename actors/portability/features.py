"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.portability.archives.feature import FEATURE as ARCHIVES
from trunkline.actors.portability.bundles.feature import FEATURE as BUNDLES
from trunkline.actors.portability.templates.feature import FEATURE as TEMPLATES

FEATURES: Final = (
    BUNDLES,
    ARCHIVES,
    TEMPLATES,
)
