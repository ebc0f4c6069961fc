"""Retention of the payload counts of applications. The application removes them (`platform/applications/actor.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.records.expiry import NEVER_MS, Part, Step, kept_since_ms, older_hours
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.applications.messages import ExpireCounts
from trunkline.store import keys

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.shared_batch import Ask
    from trunkline.store.snapshot import Snapshot


def search_counts(snapshot: Snapshot, step: Step) -> Part:
    """Search the payload counts of an application."""
    application = step.owner
    oldest_ms = kept_since_ms(step.limits.payload_count_keep_days, step.now_ms)
    if not oldest_ms:
        return Part([], None, None, NEVER_MS)
    first, end = keys.app_counts_key(application, 0), keys.app_counts_key(application, keys.HOUR_MAX)
    counted = (key for key in snapshot.keys(keys.COUNTS, first, end) if len(key) == keys.HOUR_KEY_BYTES)
    hours_counted = (int.from_bytes(key[-4:], "big") for key in counted)
    hours, wait_ms = older_hours(hours_counted, oldest_ms, step.limits.removed_entries_max)
    asks: list[Ask] = [(Ref("application", ROOT, application), ExpireCounts(hours=hours))] if hours else []
    return Part(asks, None if wait_ms else b"", None, wait_ms)
