"""All routes of the wing."""

from __future__ import annotations

from typing import Final

from trunkline.http.resources.data import alarms, contents, data_tables, events, files, mqtt, topics

ROUTES: Final = (
    *contents.ROUTES,
    *data_tables.ROUTES,
    *events.ROUTES,
    *alarms.ROUTES,
    *files.ROUTES,
    *mqtt.ROUTES,
    *topics.ROUTES,
)
