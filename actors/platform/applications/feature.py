"""What applications add to the server."""

from __future__ import annotations

from typing import Final

from trunkline.actors.core.records.expiry import Expiry
from trunkline.actors.core.records.feature import Feature
from trunkline.actors.platform.applications import notebook_minutes, payload_counts, reads
from trunkline.actors.platform.applications.actor import Application
from trunkline.actors.platform.applications.keys import KEYS
from trunkline.actors.platform.applications.messages import ExpireCounts, GetApplication, ListApplications
from trunkline.actors.platform.applications.portable import GLOBALS
from trunkline.actors.platform.applications.readme import README, GetReadme, get_readme
from trunkline.actors.platform.applications.retention import search_counts
from trunkline.actors.platform.applications.search import Search, search

FEATURE: Final = Feature(
    expiries=(Expiry(search_counts, {ExpireCounts: ("payloadCount",)}),),
    kinds=(README,),
    resources=(KEYS,),
    actors=(Application,),
    readers={
        GetReadme: get_readme,
        notebook_minutes.CountNotebookMinutes: notebook_minutes.count_notebook_minutes,
        payload_counts.CountPayloads: payload_counts.count_payloads,
        payload_counts.BreakDownPayloads: payload_counts.break_down_payloads,
    },
    counted_readers={GetApplication: reads.get_application, ListApplications: reads.list_applications},
    kind_readers={Search: search},
    portable=(GLOBALS,),
)
