"""Ways to break a server on several machines on purpose (`mutations.py`). They are tried with seeds that have some."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation

_ALL: Final = "700001..700100"

MISTAKES_ON_MACHINES: Final = (
    Mutation(
        "a group is acknowledged that the log does not have",
        "store/replicated_journal.py",
        "            await self._append(self._body)\n",
        "",
        _ALL,
    ),
    Mutation(
        "an append that was not answered is taken for stored",
        "store/log_owner.py",
        "            except LogUnreachable:\n                is_sure = False\n",
        "            except LogUnreachable:\n                return chain.place + self._log.length(data)\n",
        _ALL,
    ),
    Mutation(
        "what is read is told although another machine may own the data",
        "store/replicated_journal.py",
        "        return self._boot_s() - self._proved_s < LEASE_S\n",
        "        return True\n",
        _ALL,
    ),
    Mutation(
        "a machine takes over without what its predecessor stored last",
        "store/follower.py",
        '        if entry.kind == "group" or trio.current_time()',
        '        if entry.kind == "group" and int(trio.current_time()) % 8 or trio.current_time()',
        _ALL,
    ),
)
