"""Ways to break the move of an application to another partition on purpose (`mutations.py`).

They are tried with seeds that have moves, first with the one that is named.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation

_ALL: Final = "300001..300100"


def _moving(what: str, file: str, old: str, new: str, seed: int | None = None) -> Mutation:
    return Mutation(what, f"actors/maintenance/{file}", old, new, _ALL if seed is None else f"{seed},{_ALL}")


MISTAKES_IN_MOVES: Final = (
    _moving(
        "what was stored before the pause is not copied again",
        "move_target.py",
        "        await self._pair(runs)\n        await self._pass()\n",
        "        await self._pair(runs)\n",
        300_013,
    ),
    _moving(
        "calls are served while the copy is completed",
        "move_source.py",
        "            await moving.leave(self._system, application)\n",
        "",
        300_008,
    ),
    _moving(
        "reports of devices are not flushed before the last copy",
        "move_source.py",
        "            await moving.leave(self._system, application)\n            await self._flusher.flush_all()\n",
        "            await moving.leave(self._system, application)\n",
        300_008,
    ),
    _moving(
        "what was deleted during a move comes back",
        "application_copy.py",
        "                batch.delete(db, prefix + key)\n",
        "",
        300_053,
    ),
    _moving(
        "a copy whose move was killed is served",
        "foreign.py",
        "            is_ours = is_given(source, application, partitions.own)\n",
        "            is_ours = True\n",
        300_003,
    ),
    _moving(
        "an application whose move was killed after it departed is removed",
        "foreign.py",
        "            is_ours = is_given(source, application, partitions.own)\n",
        "            is_ours = False\n",
        300_001,
    ),
    _moving(
        "an application that has departed stays",
        "foreign.py",
        "        batch.delete(keys.RECORDS, keys.record_key(APPLICATION.name, ROOT, application))\n",
        "",
        300_001,
    ),
    _moving(
        "a move that is silent is not given up",
        "move_source.py",
        "            try:\n                await self._take_back(move)\n",
        "            try:\n                await trio.sleep(3600)\n",
        300_003,
    ),
    _moving(
        "an application that has arrived is not loaded",
        "move_target.py",
        "        await moving.come(self._system, self._application)\n",
        "        self._system.resume(self._application)\n",
        300_008,
    ),
    _moving(
        "unique names stay where the application was",
        "move_target.py",
        "            for db, key, value in switched(there, application):\n",
        "            for db, key, value in ():\n",
        300_098,
    ),
    _moving(
        "runs that wait stay where the application was",
        "move_target.py",
        "            for trigger, value in renumbered_triggers(there, here, application):\n",
        "            for trigger, value in ():\n",
        400_047,
    ),
)
