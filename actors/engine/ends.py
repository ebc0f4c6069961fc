"""The ends of runs: what is stored when a run is over, and which run records are kept.

Owns one batch for several ends: the trigger and the markers of the run are removed, the sums of its minute and of its
version are added, and its record is stored if it is kept. Because all of it is one batch, a crash leaves either the
trigger or its sums. After the commit the records that are kept go to the streams of their workflows.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.plain_json import json_bytes
from trunkline.actors.core.values.timestamps import MINUTE_MS
from trunkline.actors.workflows.flows.run_records import RUN_TOPIC, RunRecord
from trunkline.actors.workflows.triggers.shown_runs import shown_run
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import decode
from trunkline.store.errors import StoreError

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.system import System
    from trunkline.actors.workflows.triggers.queue import TriggerQueue

_FLOWS_MAX: Final = 2_000
"""Workflows whose run records are known in memory."""

_PLACE: Final = Struct(">QQ")
"""The end of the key of a run record: its position in the order of ends, and its number."""

_log = structlog.get_logger("trunkline.flows")


class _Records:
    """Run records that are kept, oldest first: 24 bytes for each, because of all workflows there may be millions."""

    __slots__ = ("_fields", "_first")

    def __init__(self) -> None:
        self._fields = array("Q")
        """Of each record the two numbers at the end of its key, and its size."""
        self._first = 0

    def __len__(self) -> int:
        return len(self._fields) // 3 - self._first

    def append(self, key: bytes, size: int) -> None:
        self._fields.extend((*_PLACE.unpack_from(key, len(key) - _PLACE.size), size))

    def pop_oldest(self) -> tuple[bytes, int]:
        """The end of its key, and its size."""
        *place, size = self._fields[3 * self._first : 3 * self._first + 3]
        self._first += 1
        if self._first > len(self):
            del self._fields[: 3 * self._first]
            self._first = 0
        return _PLACE.pack(*place), size


class _Ended(NamedTuple):
    """A run whose record is kept, and its place in the order of ends."""

    flow: Ref
    position: int
    number: int
    record: RunRecord


class _KeptRuns:
    """The run records of one workflow, oldest first, and how many were kept in the current second."""

    __slots__ = ("failed", "failed_now", "good", "good_now", "prefix", "second", "size")

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self.good = _Records()
        self.failed = _Records()
        self.size = 0
        self.second = 0
        self.good_now = 0
        self.failed_now = 0


class Ends:
    """The ends that wait to be stored."""

    def __init__(self, system: System, queue: TriggerQueue) -> None:
        self._system = system
        self._queue = queue
        self._batch = Batch()
        self._removed: list[bytes] = []
        self._counts: dict[tuple[bytes, bytes, bytes, int], dict[str, int]] = {}
        self._ended: list[_Ended] = []
        self._failed: list[tuple[Batch, list[_Ended]]] = []
        """The batches of a commit that has failed, in their order."""
        self._kept: OrderedDict[tuple[bytes, bytes], _KeptRuns] = OrderedDict()
        system.forgotten.append(self._forget)

    def remove(self, key: bytes) -> None:
        """Remove a trigger or a marker."""
        self._removed.append(key)

    def put_trigger(self, key: bytes, raw: bytes) -> None:
        """Store a trigger, or what has changed of it."""
        self._batch.put(keys.TRIGGERS, key, raw)

    def count(
        self, application: bytes, flow: bytes, version: bytes, ended_ms: int, counts: dict[str, int]
    ) -> None:
        """Add to the sums of the minute and of the version. `counts` is not the caller's any more."""
        place = (application, flow, version, ended_ms // MINUTE_MS)
        sums = self._counts.get(place)
        if sums is None:
            self._counts[place] = counts
            return
        for name, count in counts.items():
            sums[name] = sums.get(name, 0) + count

    def may_keep(self, application: bytes, flow: bytes, ended_ms: int, *, failed: bool) -> bool:
        """Whether the record of a run is kept; then it counts as kept."""
        kept, limits = self._kept_runs(application, flow), self._system.limits
        second = ended_ms // 1000
        if kept.second != second:
            kept.second, kept.good_now, kept.failed_now = second, 0, 0
        if failed:
            kept.failed_now += 1
            return kept.failed_now <= 2 * limits.kept_runs_max
        kept.good_now += 1
        return kept.good_now <= limits.kept_runs_max

    def keep(self, application: bytes, flow: bytes, number: int, record: RunRecord) -> None:
        """Store a run record, and remove the oldest ones above the bounds."""
        kept, limits = self._kept_runs(application, flow), self._system.limits
        # Ranges of time select records by their positions.
        position = self._queue.next_number(record.ended_ms)
        key = keys.flow_run_key(application, flow, position, number)
        raw = record.encoded()
        self._batch.put(keys.FLOWS, key, raw)
        of_kind = kept.good if record.outcome == "completed" else kept.failed
        of_kind.append(key, len(raw))
        kept.size += len(raw)
        while len(kept.good) > limits.good_run_records_max:
            self._drop(kept, kept.good)
        while len(kept.failed) > limits.failed_run_records_max:
            self._drop(kept, kept.failed)
        while kept.size > limits.run_records_bytes_max and (kept.good or kept.failed):
            self._drop(kept, kept.good or kept.failed)
        self._ended.append(_Ended(Ref("flow", application, flow), position, number, record))

    def flush(self) -> None:
        """Store what waits. If that fails, it waits again."""
        for lost, ended in reversed(self._failed):
            self._before_others(lost, ended)
        self._failed.clear()
        batch, ended = self._batch, self._ended
        batch.delete_all(keys.TRIGGERS, self._removed)
        self._removed.clear()
        for (application, flow, version, minute), sums in self._counts.items():
            batch.add(keys.FLOWS, keys.flow_minute_key(application, flow, minute, version), sums)
            batch.add(keys.FLOWS, keys.flow_total_key(application, flow, version), sums)
        self._counts.clear()
        if not batch:
            return
        self._batch, self._ended = Batch(), []

        def settled(error: StoreError | None) -> None:
            if error is None:
                self._publish(ended)
            else:
                self._failed.append((batch, ended))

        try:
            group = self._system.journal.submit(batch)
        except StoreError:  # too much waits for the disk
            self._before_others(batch, ended)
            return
        if group.error is not None:
            self._before_others(batch, ended)
        else:
            group.settled(settled)

    def _publish(self, ended: list[_Ended]) -> None:
        """Tell the streams, also those opened since the ends, which could not read them in the store then."""
        for each in ended:
            if self._system.has_subscribers(each.flow, RUN_TOPIC):
                try:
                    event = json_bytes(shown_run(each.number, each.record))
                except Exception:  # noqa: BLE001 - it must not take the runs of other workflows
                    _log.exception("a run could not be told to its streams", flow=each.flow.id.hex())
                    self._system.end_streams(each.flow, RUN_TOPIC)
                else:
                    self._system.publish(each.flow, RUN_TOPIC, [(each.position, event)])

    def _before_others(self, batch: Batch, ended: list[_Ended]) -> None:
        """Let a batch wait again, before what came after it."""
        batch.extend(self._batch)
        self._batch = batch
        self._ended = ended + self._ended

    def _forget(self, application: bytes) -> None:
        """An application is deleted, and the sweep removes the records of its runs."""
        for place in [place for place in self._kept if place[0] == application]:
            del self._kept[place]

    def _drop(self, kept: _KeptRuns, records: _Records) -> None:
        place, size = records.pop_oldest()
        kept.size -= size
        self._batch.delete(keys.FLOWS, kept.prefix + place)

    def _kept_runs(self, application: bytes, flow: bytes) -> _KeptRuns:
        place = (application, flow)
        kept = self._kept.get(place)
        if kept is not None:
            self._kept.move_to_end(place)
            return kept
        prefix = keys.flow_runs_prefix(application, flow)
        kept = _KeptRuns(prefix)
        end = keys.prefix_end(prefix)
        assert end is not None
        for key, raw in self._system.journal.range(keys.FLOWS, prefix, end):
            of_kind = kept.good if decode(raw)["outcome"] == "completed" else kept.failed
            of_kind.append(key, len(raw))
            kept.size += len(raw)
        self._kept[place] = kept
        if len(self._kept) > _FLOWS_MAX:
            self._kept.popitem(last=False)
        return kept
