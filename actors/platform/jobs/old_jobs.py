"""Jobs that are to be deleted: those above the limits of the log in number or age."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunkline.actors.core.records import records
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.platform.jobs.kind import JOB, OWNERS
from trunkline.store import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.store.snapshot import Snapshot


def expired_jobs(snapshot: Snapshot, length_max: int, oldest_ms: int) -> dict[Ref, list[bytes]]:
    """The ended jobs to delete, by owner: the oldest above the limit, and those that are too old."""
    found: dict[Ref, list[bytes]] = {}
    for owner in job_owners(snapshot):
        surplus = records.total(snapshot, JOB, owner.id) - length_max
        if surplus <= 0 and not _has_old(snapshot, owner.id, oldest_ms):
            continue
        ended = [
            (id, doc["runCompletedAt"])
            for id, doc in records.scan(snapshot, JOB, owner.id)
            if "runCompletedAt" in doc
        ]
        old = [id for place, (id, ms) in enumerate(ended) if place < surplus or ms < oldest_ms]
        if old:
            found[owner] = old
    return found


def job_owners(snapshot: Snapshot) -> Iterator[Ref]:
    """Yield every actor that may own jobs."""
    for kind, actor in OWNERS.items():
        for id, _ in records.scan(snapshot, kind, ROOT):
            yield Ref(actor, ROOT, id)


def _has_old(snapshot: Snapshot, parent: bytes, oldest_ms: int) -> bool:
    """Whether the oldest job, which is the first by its id, was queued before `oldest_ms`."""
    prefix = keys.record_prefix(JOB.name, parent)
    first = next(snapshot.keys(keys.RECORDS, prefix, keys.prefix_end(prefix)), None)
    return first is not None and int.from_bytes(first[-12:-8], "big") * 1000 < oldest_ms
