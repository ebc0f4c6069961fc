"""Backups of stores that a test has open: only another process may make them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

_COMMANDS = """
import sys
from pathlib import Path
from trunkline.store.backup import backup
backup(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def back_up(directory: Path, target: Path) -> None:
    """Copy a data directory in another process. Blocks: a test with running tasks calls it in a thread."""
    command = [sys.executable, "-c", _COMMANDS, str(directory), str(target)]
    subprocess.run(command, timeout=PATIENCE_S, check=True)
