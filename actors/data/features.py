"""What each package of the wing adds, in the order of the packages."""

from __future__ import annotations

from typing import Final

from trunkline.actors.data.events.feature import FEATURE as EVENTS
from trunkline.actors.data.files.feature import FEATURE as FILES
from trunkline.actors.data.tables.feature import FEATURE as TABLES
from trunkline.actors.data.topics.feature import FEATURE as TOPICS

FEATURES: Final = (
    TABLES,
    EVENTS,
    TOPICS,
    FILES,
)
