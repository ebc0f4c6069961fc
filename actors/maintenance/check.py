"""`trunkline check`: reads a whole data directory in a process of its own, and survives what it finds.

A damaged page may end the process that reads it, by an assertion of LMDB or a signal. So another process reads
(`verify.py`), and says each thing when it finds it; if it dies, what it said is reported, with where it was and how it
died. This process imports nothing of what is verified.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from trunkline.store.backup import Report
from trunkline.store.contents_location import ContentsPlace
from trunkline.store.directory import KEYS_FILE
from trunkline.store.errors import BackupRefused
from trunkline.store.partitions import partition_directory

_PROGRAM: Final = "trunkline.actors.maintenance.verify"
_REASON_CHARACTERS_MAX: Final = 300


def check(
    path: Path, keys_file: Path | None = None, place: ContentsPlace | None = None, partition: int = 0
) -> Report:
    """Verify a partition of the data directory or backup at `path` in another process.

    Raises BackupRefused if there is none.

    `keys_file` holds the encryption keys of stored secrets, and `place` is where the contents of files are, if not in
    the directory.
    """
    report = Report()
    refused: str | None = None
    ended = False
    with tempfile.TemporaryFile("w+") as errors:
        command = [
            sys.executable,
            "-m",
            _PROGRAM,
            str(path),
            str(keys_file or path / KEYS_FILE),
            str(partition),
        ]
        with subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as child:
            # Not as an argument, which other users of the machine may see: it has a secret.
            with suppress(BrokenPipeError), cast("Any", child.stdin) as given:
                json.dump(None if place is None else asdict(place), given)
            for line in cast("Any", child.stdout):
                match json.loads(line):
                    case ["stage", stage]:
                        report.begin(stage)
                    case ["count", db, entries]:
                        report.counted(db, entries)
                    case ["problem", problem]:
                        report.add(problem)
                    case ["refused", sentence]:
                        refused = sentence
                    case ["end", number]:
                        report.format, ended = number, True
        if refused is not None:
            raise BackupRefused(refused)
        if not ended:
            errors.seek(0)
            reason = errors.readline(_REASON_CHARACTERS_MAX).strip()
            report.add(_death(partition_directory(path, partition), report.stage, child.returncode, reason))
    return report


def _death(path: Path, stage: str, code: int, reason: str) -> str:
    """The sentence for a check that did not come to its end."""
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (
        f"The check of {path} died of {how} in the {stage}{': ' if reason else ''}{reason}. What comes after that "
        "place was not checked; a server would die there as well. Restore a backup."
    )
