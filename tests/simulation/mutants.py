"""Runs the simulation on servers that were broken on purpose: `python -m tests.simulation.mutants --jobs 2`.

Each mutant is a copy of the rooms in which a text was changed (`mutations.py`, `regressions.py`). The output says which
seed found it, and by what; the exit code is 1 if one was not found. `--only TEXT` runs those whose description contains
the text. A fault of the list is tried with its own seed first, a mistake between processes with seeds of several.
"""
# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.simulation.mutation import Mutation
from tests.simulation.mutations import MUTATIONS
from tests.simulation.regressions import REGRESSIONS

CHECKOUT: Final = Path(__file__).resolve().parent.parent.parent
ROOMS: Final = ("actors", "bench", "http", "limits", "store")


def main() -> int:
    """Run all mutants, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument(
        "--seeds", default="100001..100100", help="run each mutant with these, until one finds it"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--only", default="", help="a part of the description of a mutant")
    given = parser.parse_args()
    mutants: list[tuple[str, Sequence[Mutation], str]] = [
        (each.what, (each,), each.seeds or given.seeds) for each in MUTATIONS
    ]
    mutants += [
        (each.what, each.back, f"{each.seed},{given.seeds}" if each.seed else each.back[0].seeds)
        for each in REGRESSIONS
    ]
    chosen = [mutant for mutant in mutants if given.only in mutant[0]]
    missed = 0
    for what, mutations, seeds in chosen:
        began_s = time.monotonic()
        found = found_by(mutations, seeds, given.jobs)
        missed += found is None
        print(f"{what}: {found or 'NOT FOUND'} ({time.monotonic() - began_s:.0f} s)", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutants found")
    return int(missed > 0)


def found_by(mutations: Sequence[Mutation], seeds: str, jobs: int = 1) -> str | None:
    """The first seed that finds a mutant, with the promise that is broken; None if none does."""
    with tempfile.TemporaryDirectory(prefix="trunkline-mutant-") as path:
        tree = Path(path)
        _lay(tree, mutations)
        command = [sys.executable, "-m", "tests.simulation", "--seeds", seeds, "--jobs", str(jobs), "--first"]
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    found = re.search(r"^seed (\d+) FAILED: (.*)$", done.stdout, re.MULTILINE)
    if found is None and done.returncode:
        raise RuntimeError(done.stderr)
    return None if found is None else f"seed {found[1]}: {found[2][:150]}"


def _lay(tree: Path, mutations: Sequence[Mutation]) -> None:
    """Lay a package of which all rooms but those that are changed are those of the checkout."""
    (tree / "trunkline").mkdir()
    (tree / "tests").symlink_to(CHECKOUT / "tests", target_is_directory=True)
    changed = {mutation.file.partition("/")[0] for mutation in mutations}
    for room in ROOMS:
        target = tree / "trunkline" / room
        if room in changed:
            shutil.copytree(CHECKOUT / room, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.symlink_to(CHECKOUT / room, target_is_directory=True)
    for mutation in mutations:
        file = tree / "trunkline" / mutation.file
        text = file.read_text()
        assert text.count(mutation.old) == 1, f"{mutation.file} does not contain this once: {mutation.old}"
        file.write_text(text.replace(mutation.old, mutation.new))


if __name__ == "__main__":
    sys.exit(main())
