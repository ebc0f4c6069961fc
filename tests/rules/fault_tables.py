"""The tables of the document that says how the server is tested: rare states, mistakes, faults that were found.

Owns their contents; `doc_tables.py` says which document contains them.
"""

from __future__ import annotations

from tests.rules.markdown import code, table
from tests.simulation.coverage import RARE, RARE_OF_MOVES, RARE_OF_PROCESSES
from tests.simulation.mutations import MUTATIONS
from tests.simulation.regressions import REGRESSIONS


def rare_states() -> str:
    """What the seeds of a long run must all have reached."""
    return "\n".join(f"- {state}" for state in sorted(RARE, key=str.lower))


def rare_states_of_processes() -> str:
    """The same for seeds with several partitions."""
    return "\n".join(f"- {state}" for state in sorted(RARE_OF_PROCESSES, key=str.lower))


def rare_states_of_moves() -> str:
    """What a thousand seeds with moves must reach as well."""
    own = {*RARE_OF_MOVES} - {*RARE_OF_PROCESSES}
    return "\n".join(f"- {state}" for state in sorted(own, key=str.lower))


def mistakes() -> str:
    """Each way in which the server is broken on purpose."""
    return table(("Mistake", "Where"), ((each.what, code(each.file)) for each in MUTATIONS))


def faults_found() -> str:
    """The faults that the simulation has found."""
    return table(("Fault", "Mended in"), ((each.what, code(each.commit)) for each in REGRESSIONS))
