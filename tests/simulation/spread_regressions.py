"""Faults of servers whose partitions belong to several machines (`regressions.py`)."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutation import Mutation, Regression

FAULTS_BETWEEN_MACHINES: Final = (
    Regression(
        "the sweep of MQTT sessions ended its process, where the copy of another partition was not fresh",
        (
            Mutation(
                "it is looked which partition has what a search begins with",
                "actors/data/topics/session_records.py",
                "next(Snapshot.keys(snapshot, keys.MESSAGES, low, None), None)",
                "next(snapshot.keys(keys.MESSAGES, low, None), None)",
            ),
        ),
        "d2a36903",
        800_004,
    ),
    Regression(
        "MQTT clients were told that they are not authorized, where nobody could say",
        (
            Mutation(
                "each refusal is one of the login",
                "http/mqtt/session.py",
                "        if isinstance(found, Overloaded):  #",
                "        if False:  #",
            ),
        ),
        "d2a36903",
        800_004,
    ),
    Regression(
        "the queue of triggers ended its process, where it was not known who pays",
        (
            Mutation(
                "who pays is read at the end of a turn",
                "actors/core/records/owners.py",
                "        return _as_known(self._founders, owner) or owner",
                "        return self._founders.get(ROOT, owner) or owner",
            ),
        ),
        "55455069",
        800_011,
    ),
    Regression(
        "a run was refused for good, where nobody could say what its authors may do",
        (
            Mutation(
                "rights that cannot be read have ended",
                "actors/people/organizations/mandates.py",
                "            except Overloaded:\n                raise  # nobody can say just now\n",
                "",
            ),
            Mutation(
                "a run begins whoever is heard",
                "actors/engine/runner.py",
                "                if not self._system.is_readable:\n",
                "                if False:\n",
            ),
        ),
        "d2a36903",
        800_022,
    ),
)
