"""The tables of the document that says how the server is tested: rare states, mistakes, faults that were found.

Owns their contents; `doc_tables.py` says which document contains them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

from tests.rules.markdown import code, table
from tests.simulation.coverage import (
    RARE,
    RARE_OF_DOORS,
    RARE_OF_MACHINES,
    RARE_OF_MOVES,
    RARE_OF_PROCESSES,
    RARE_OF_TIMES,
)
from tests.simulation.mutations import MUTATIONS
from tests.simulation.regressions import REGRESSIONS


def _listed(states: Iterable[str]) -> str:
    return "\n".join(f"- {state}" for state in sorted(states, key=str.lower))


RARE_STATES: Final = {
    "rare states": partial(_listed, RARE),
    "rare states of processes": partial(_listed, RARE_OF_PROCESSES),
    "rare states of moves": partial(_listed, RARE_OF_MOVES),
    "rare states of times": partial(_listed, RARE_OF_TIMES),
    "rare states of doors": partial(_listed, RARE_OF_DOORS),
    "rare states of machines": partial(_listed, RARE_OF_MACHINES),
}
"""What the seeds of a long run must all have reached, by sort of seeds."""


def mistakes() -> str:
    """Each way in which the server is broken on purpose."""
    return table(("Mistake", "Where"), ((each.what, code(each.file)) for each in MUTATIONS))


def faults_found() -> str:
    """The faults that the simulation has found."""
    return table(("Fault", "Mended in"), ((each.what, code(each.commit)) for each in REGRESSIONS))
