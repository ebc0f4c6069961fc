"""Ways to break the server on purpose: a text in a file, and what stands in its place. The simulation must find each.

Each breaks one promise as a small mistake would. The text occurs once in its file, which a test checks.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.connection_mutations import MISTAKES_ON_CONNECTIONS
from tests.simulation.machine_mutations import MISTAKES_ON_MACHINES
from tests.simulation.move_mutations import MISTAKES_IN_MOVES
from tests.simulation.mutation import Mutation
from tests.simulation.partition_mutations import MISTAKES_BETWEEN_PROCESSES
from tests.simulation.spread_mutations import MISTAKES_BETWEEN_MACHINES

MUTATIONS: Final = (
    Mutation(
        "commits are not synced", "store/memory_map.py", "            sync=True,", "            sync=False,"
    ),
    Mutation(
        "the page that makes a commit valid is not synced",
        "store/memory_map.py",
        "metasync=True",
        "metasync=False",
    ),
    Mutation(
        "a call is acknowledged before its commit",
        "actors/core/runtime/system.py",
        "        if group is not None:\n            mailbox.awaiting_commit += 1",
        "        if group is not None and group.done:\n            mailbox.awaiting_commit += 1",
    ),
    Mutation(
        "a failed commit is acknowledged",
        "store/journal.py",
        "        self._finish(error)",
        "        self._finish(None)",
    ),
    Mutation(
        "actors keep in memory what a failed commit has dropped",
        "store/journal.py",
        "        self.statistics.failures += 1\n        self.epoch += 1",
        "        self.statistics.failures += 1",
    ),
    Mutation(
        "reports of a failed commit stay in the window",
        "store/journal.py",
        "            self._arrivals.undo()\n            self._map.recover",
        "            self._map.recover",
    ),
    Mutation(
        "a throttle lets one call more pass",
        "limits/window.py",
        "self._calls = rate.calls",
        "self._calls = rate.calls + 1",
    ),
    Mutation(
        "a call at the edge of a window still counts",
        "limits/window.py",
        "if self._count and now - ring[self._first] >= window_s:",
        "if self._count and now - ring[self._first] > window_s:",
    ),
    Mutation(
        "a revoked token still opens what it has opened",
        "actors/core/runtime/revocations.py",
        "            bearer.revoked = True",
        "            bearer.revoked = False",
    ),
    Mutation(
        "a repeated call is done again",
        "actors/core/records/kept_answers.py",
        "    if time_ms < oldest_ms:",
        "    if time_ms >= oldest_ms:",
    ),
    Mutation(
        "a flush loses the newest report of a device",
        "store/flusher.py",
        "points, is_wiped = points_of(found)",
        "points, is_wiped = points_of(found[:-2])",
    ),
    Mutation(
        "a flush leaves the head of a device as it was",
        "store/flusher.py",
        "return self._advance_head(ahead) if ahead.reports or ahead.link else head",
        "return head",
    ),
    Mutation(
        "a flush says that later reports are in the runs as well",
        "store/flusher.py",
        "encode(window.last))",
        "encode(self._arrivals.seq + 1))",
    ),
    Mutation(
        "a pack loses the oldest commit",
        "store/flusher.py",
        "    return packed(chunks)",
        "    return packed(chunks[1:] or chunks)",
    ),
    Mutation(
        "a compaction loses the points that do not fill a block",
        "store/compaction.py",
        "        blocks |= self._blocks(device, waiting)\n        for run, layer",
        "        for run, layer",
    ),
    Mutation(
        "counts of one commit replace each other",
        "store/overlay.py",
        "                merge_increments(increments, key, counts)",
        "                increments[key] = dict(counts)",
    ),
    Mutation(
        "index entries are not deleted",
        "store/overlay.py",
        "                    if value is None:",
        '                    if value is None and db != "indexes":',
    ),
    Mutation(
        "a unique value is looked for on the disk only after it was committed",
        "actors/data/tables/actor.py",
        "        if self.system.journal.get(keys.CELLS, key) is not None:\n            raise Invalid",
        "        if False:\n            raise Invalid",
    ),
    Mutation(
        "a row that was deleted keeps its unique values",
        "actors/data/tables/actor.py",
        "            self._free(key)\n        self.counts.rows -= 1",
        "            pass\n        self.counts.rows -= 1",
    ),
    Mutation(
        "a run that is repeated does again what it has done",
        "actors/engine/world.py",
        "        done = self._done.get(marker)",
        "        done = None",
    ),
    Mutation(
        "a stream that comes back begins with what was sent last",
        "http/streams/sse.py",
        "        self._replayed = position",
        "        self._replayed = position - 1",
    ),
    Mutation(
        "the next due time of a timer is kept in memory only",
        "actors/workflows/flows/stored.py",
        "        self._put_timed(before, Timed(timers, corrected(before.watches, now_ms)))",
        "        self.after_commit(partial(self._know, Timed(timers, before.watches)))",
    ),
    Mutation(
        "a timer counts from when it fired",
        "actors/workflows/flows/schedules.py",
        "        return due_ms + (missed + 1) * self._ms, missed",
        "        return now_ms + self._ms, missed",
    ),
    Mutation(
        "a planned press that is done stays on the disk",
        "actors/workflows/triggers/scheduled.py",
        "            self._remove(place)\n            flow, body",
        "            self._due.set(place, None)\n            flow, body",
    ),
    Mutation(
        "nobody waits for the silence of a device that was silent before",
        "actors/fleet/devices/actor/due.py",
        "            head.is_silent = True",
        "            head.is_silent = False",
    ),
    *MISTAKES_ON_CONNECTIONS,
    *MISTAKES_BETWEEN_PROCESSES,
    *MISTAKES_IN_MOVES,
    *MISTAKES_ON_MACHINES,
    *MISTAKES_BETWEEN_MACHINES,
    Mutation(
        "what is too old takes younger states of its block with it",
        "actors/fleet/devices/state/retention.py",
        "            if block.last_ms >= oldest_ms:",
        "            if block.first_ms >= oldest_ms:",
    ),
    Mutation(
        "retention removes the newest state",
        "actors/fleet/devices/state/retention.py",
        "            if any(block.first_ms <= time_ms <= block.last_ms for time_ms in needed):",
        "            if any(block.first_ms <= time_ms <= block.last_ms for time_ms in needed - {max(needed)}):",
    ),
    Mutation(
        "reads show a state for a minute too long",
        "actors/fleet/devices/state/history.py",
        "    return kept_since_ms(reading.limits.state_keep_days, now_ms)",
        "    return kept_since_ms(reading.limits.state_keep_days, now_ms - 60_000)",
    ),
    Mutation(
        "the sweep leaves the values by which rows of a deleted table are found",
        "actors/maintenance/sweep.py",
        "    for db in (keys.ROWS, keys.CELLS):",
        "    for db in (keys.ROWS,):",
    ),
    Mutation(
        "the sweep leaves the counts of a deleted application",
        "actors/maintenance/sweep.py",
        "        if snapshot.get(keys.COUNTS, counter) is not None:",
        "        if snapshot.get(keys.COUNTS, counter) is None:",
    ),
    Mutation(
        "the sweep leaves the deployments and the index entries of a device that cannot be restored any more",
        "actors/maintenance/sweep.py",
        "        yield from _steps_of(snapshot, EMBEDDED_DEPLOYMENT, application, device)\n        yield step",
        "        yield step._replace(deletes=step.deletes[-1:])",
    ),
    Mutation(
        "a content is not synced before it gets its name",
        "store/blobs.py",
        "            os.fsync(self._file.fileno())",
        "            self._file.flush()",
    ),
    Mutation(
        "the name of a content is not synced",
        "store/blobs.py",
        "            self._draft.replace(path)\n            sync_directory(folder)",
        "            self._draft.replace(path)",
    ),
    Mutation(
        "the content of a deleted file is forgotten and stays",
        "actors/core/contents/contents.py",
        "        actor.put(keys.META, keys.content_key(application, content), encode(0))",
        "        actor.delete(keys.META, keys.content_key(application, content))",
    ),
    Mutation(
        "an API token that is switched off opens what it has opened",
        "actors/people/accounts/tokens.py",
        'ends_access=frozenset({"status", "name"})',
        'ends_access=frozenset({"name"})',
    ),
    Mutation(
        "what is deleted keeps the access that it gave",
        "actors/core/records/records.py",
        "    if kind.ends_access:",
        "    if False:",
    ),
    Mutation(
        "members make access keys who may only change what is there",
        "actors/people/organizations/roles.py",
        '    "applicationKeys.*": Level.MANAGE,',
        '    "applicationKeys.*": Level.WRITE,',
    ),
    Mutation(
        "a new record has no index entries that its kind shares with others",
        "actors/core/records/records.py",
        "    for key in after:\n        if key not in before:",
        "    for key in sorted(after)[1:]:\n        if key not in before:",
    ),
    Mutation(
        "the count of rows misses those that are deleted",
        "actors/data/tables/actor.py",
        "            self._free(key)\n        self.counts.rows -= 1",
        "            self._free(key)",
    ),
    Mutation(
        "the trigger of a run stays when the run has ended",
        "actors/engine/ends.py",
        "        batch.delete_all(keys.TRIGGERS, self._removed)",
        "        batch.delete_all(keys.TRIGGERS, self._removed[1:])",
    ),
    Mutation(
        "that an alarm has closed is not stored",
        "actors/fleet/devices/actor/due.py",
        "        if alarms.standings:\n",
        "        if not any(each.is_open for each in alarms.standings.values()):\n            pass\n"
        "        elif alarms.standings:\n",
    ),
)
