"""Runs a history so that its seed decides everything. Owns no test."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.simulation.determinism import VirtualTime, run


def repeated(
    name: str, live: Callable[[Path, int], Awaitable[Counter[str]]], tmp_path: Path, seed: int
) -> Counter[str]:
    """What happened in the history of a seed, which `live` makes in a folder of its own."""
    folder, found = tmp_path / str(seed), Counter[str]()
    folder.mkdir()

    async def history(_virtual: VirtualTime) -> None:
        found.update(await live(folder, seed))

    run(f"{name} {seed}", history)
    shutil.rmtree(folder)
    return found
