"""The manifest of a backup: the length and the SHA-256 of each of its files.

A backup may be damaged where it lies or while it is copied. `trunkline check` compares its files with the manifest,
and so does the first start on it, which then removes the manifest, because from then on the files change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trunkline.store.directory import MANIFEST, sync_directory, write_private
from trunkline.store.errors import StoreDamaged, translate

_BYTES, _SHA256 = "bytes", "sha256"


def write_manifest(directory: Path, names: Iterable[str]) -> None:
    """Write the manifest of these files of `directory`. On disk when this returns. Raises OSError."""
    files = {name: _seen(directory / name) for name in names}
    write_private(directory / MANIFEST, json.dumps({"files": files}, indent=2).encode() + b"\n")


def manifest_problems(directory: Path) -> list[str]:
    """What is not as the manifest of `directory` says; empty without a manifest. Reads all files."""
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise translate(error, f"reading of {path}") from error
    try:
        files: dict[str, dict[str, Any]] = json.loads(raw)["files"]
        expected = {name: (seen[_BYTES], seen[_SHA256]) for name, seen in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{path} is damaged, so the files of the backup cannot be compared with it."]
    problems = []
    for name, (size_bytes, sha256) in expected.items():
        try:
            seen = _seen(directory / name)
        except FileNotFoundError:
            problems.append(f"{directory / name} is missing, but the backup has it.")
            continue
        except OSError as error:
            raise translate(error, f"reading of {directory / name}") from error
        if seen[_BYTES] != size_bytes:
            problems.append(
                f"{directory / name} has {seen[_BYTES]} bytes, in the backup it had {size_bytes}."
            )
        elif seen[_SHA256] != sha256:
            problems.append(f"{directory / name} is not what was backed up: its SHA-256 is another one.")
    return problems


def accept_backup(directory: Path) -> None:
    """Compare a backup with its manifest and remove that. Raises StoreDamaged if they differ."""
    path = directory / MANIFEST
    if not path.exists():
        return
    problems = manifest_problems(directory)
    if problems:
        raise StoreDamaged(
            f"{' '.join(problems)} Copy the backup again, or use another one. If the change is intended, "
            f"remove {path}."
        )
    try:
        path.unlink()
        sync_directory(directory)
    except OSError as error:
        raise translate(error, f"removal of {path}") from error


def _seen(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        return {_BYTES: file.tell(), _SHA256: sha256}
