"""Ways to break a server whose partitions belong to several machines on purpose (`mutations.py`)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation

_ALL: Final = "800001..800100"

MISTAKES_BETWEEN_MACHINES: Final = (
    Mutation(
        "a commit is answered before the copies have it",
        "store/replicated_journal.py",
        "        if is_read_elsewhere(overlay):\n            place",
        "        if False:\n            place",
        _ALL,
    ),
    Mutation(
        "a release proves that the store is fresh",
        "store/replicated_journal.py",
        "        if not self._is_released:\n",
        "        if True:\n",
        _ALL,
    ),
    Mutation(
        "a copy is read that is not fresh",
        "store/freshness.py",
        "        return boot == self._boot and self.clock_s() * _NS < until_ns\n",
        "        return True\n",
        _ALL,
    ),
    Mutation(
        "a follower does not tell whose access has ended",
        "store/partition_copy.py",
        "                self._numbers.revoke(key[-keys.ID_BYTES :])\n",
        "                pass\n",
        _ALL,
    ),
    Mutation(
        "a follower does not tell that records have changed",
        "store/partition_copy.py",
        "            self._numbers.note_change()\n",
        "",
        _ALL,
    ),
    Mutation(
        "names of the server are claimed without the right to",
        "store/partitioned.py",
        "            return self.may_name\n        if",
        "            return True\n        if",
        _ALL,
    ),
)
