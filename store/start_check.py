"""What is looked at before a store is opened: the pages of its file, before LMDB reads any."""

from __future__ import annotations

from pathlib import Path

import structlog

from trunkline.store import pages
from trunkline.store.directory import data_file
from trunkline.store.errors import StoreDamaged
from trunkline.store.manifest import accept_backup

_log = structlog.get_logger("trunkline.store")


def check_before(directory: Path, died: str | None, seconds_max: float) -> None:
    """Verify the pages of a store that no process has open, and a backup's files. Raises StoreDamaged.

    `died` is what an earlier process left that died of a fault: then all pages are verified, however long it takes.
    """
    file = data_file(directory)
    accept_backup(directory)
    try:
        found = pages.inspect(file, seconds_max=None if died else seconds_max)
        problems = found.problems
    except StoreDamaged as damage:
        problems = [str(damage)]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StoreDamaged(
            f"{file} is damaged: {problems[0]}{more}. Nothing was changed. `trunkline check --data {directory}` "
            "lists what can be found; restore a backup."
        )
    if died:
        _log.warning(
            "the process before died of a fault while it used this directory; all pages of the store are sound "
            f"now, `trunkline check --data {directory}` also verifies the values",
            file=str(file),
            crash=died,
        )
    elif not found.complete:
        _log.info(
            "the time for the check of the pages is over; `trunkline check` verifies all of them",
            pages=found.pages,
            start_check_s=seconds_max,
        )
