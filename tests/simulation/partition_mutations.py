"""Ways to break what is between the processes of a server with several partitions on purpose (`mutations.py`).

They are tried with seeds that have several partitions, first with the one that is named.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation

_ALL: Final = "200001..200100"
_WITH_DOORS: Final = "500001..500100"


def _between(what: str, file: str, old: str, new: str, seed: int | None = None) -> Mutation:
    return Mutation(what, file, old, new, _ALL if seed is None else f"{seed},{_ALL}")


MISTAKES_BETWEEN_PROCESSES: Final = (
    _between(
        "a new application is not placed, and comes to the root",
        "actors/core/records/places.py",
        "        self.place(application, self.emptiest())",
        "        pass",
        200001,
    ),
    _between(
        "a question for an actor is asked of the first other process",
        "http/processes/peers.py",
        "        return Answer(*await self._asked(self._places.of_ref(ref), ASK, ref, message))",
        "        return Answer(*await self._asked(next(iter(self.doors)), ASK, ref, message))",
        200002,
    ),
    _between(
        "other processes are not told whose access has ended",
        "actors/core/runtime/revocations.py",
        "            self.shared.revoke(subject)",
        "            pass",
    ),
    _between(
        "it is not looked whose access other processes have ended before a token is relied on",
        "http/calls/auth.py",
        "        self._system.revocations.follow()",
        "        pass",
    ),
    _between(
        "what other processes have is read once, and remembered",
        "store/partitioned.py",
        "            return self._of(place).get(db, key)\n        value",
        '            kept = partitions.__dict__.setdefault("kept", {})\n'
        "            return kept.setdefault((db, key), self._of(place).get(db, key))\n        value",
    ),
    _between(
        "whether a name is free is looked up in the own partition only",
        "store/partitioned_journal.py",
        "        if place == EVERYWHERE and (value is None or db == keys.COUNTS):",
        "        if place == EVERYWHERE and db == keys.COUNTS:",
    ),
    _between(
        "lists of applications leave out other partitions",
        "store/partitioned.py",
        "        parts = [self._counting(*part, db, lo, hi, reverse=reverse) for part in self._all()]",
        "        parts = [self._counting(*self._all()[0], db, lo, hi, reverse=reverse)]",
        200001,
    ),
    _between(
        "applications of other partitions are listed and not counted",
        "store/partitioned.py",
        "        if db == keys.COUNTS and not self._wide:\n            return value",
        "        if db == keys.COUNTS:\n            return value",
        200001,
    ),
    _between(
        "a call is sent again to an owner that has died and started again",
        "http/processes/door.py",
        "                await self._pass_back(channel, number, call, exchange, send)\n",
        "                while not (call.messages or call.left):\n"
        "                    if call.ended:\n"
        "                        while not self.channel.open:\n"
        "                            await trio.sleep(0.1)\n"
        "                        channel, call.ended = self.channel, False\n"
        "                        channel.send(Kind.CALL, number, head, body, more)\n"
        "                    await call.changed()\n"
        "                await self._pass_back(channel, number, call, exchange, send)\n",
        200001,
    ),
    _between(
        "a call whose owner has died is said to be done",
        "http/processes/door.py",
        '    return _refusal(503, NO_OWNER) if method in ("GET", "HEAD") else _refusal(502, OWNER_ENDED)',
        '    return 200, ((b"content-type", b"application/json"), (b"content-length", b"2")), b"{}"',
        200001,
    ),
    _between(
        "a call for an owner that is away waits for ever",
        "http/processes/door.py",
        "        if again is None or not channel.open or exchange.offer is not None:",
        "        if again is None or exchange.offer is not None:",
        200001,
    ),
    _between(
        "a batch of which a part has come is read",
        "http/processes/batches.py",
        "                if len(data) < end:\n                    return\n",
        "",
        200001,
    ),
    _between(
        "messages of one turn of the loop are sent in another order",
        "http/processes/channel.py",
        "            self._connection.send(encode(waiting))",
        "            self._connection.send(encode(waiting[::-1]))",
        200002,
    ),
    Mutation(
        "a door passes everything on to the root",
        "http/processes/partition_front.py",
        "        return ROOT_PARTITION if application is None else self.places.of_application(application)\n",
        "        return ROOT_PARTITION\n",
        _WITH_DOORS,
    ),
    _between(
        "the way to a process that has died is not opened again",
        "http/processes/passage.py",
        "                nursery.cancel_scope.cancel()\n            if self._left:\n                return\n",
        "                nursery.cancel_scope.cancel()\n            return\n",
        200001,
    ),
)
