"""A package of the npm registry, fetched by npm, with the integrity that is expected. For development only."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple


class NpmPackage(NamedTuple):
    """A package: its version, the sha512 of its archive in the form of npm, and its files by their paths in it."""

    name: str
    version: str
    integrity: str
    files: dict[str, bytes]


def fetch(name: str, version: str, integrity: str | None = None) -> NpmPackage:
    """Fetch a version (`latest`: the newest). Raises `ValueError` if its archive has not the given integrity."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--json", "--pack-destination", folder, f"{name}@{version}"]
        (told,) = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
        (archive,) = (path.read_bytes() for path in Path(folder).iterdir())
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != (integrity or told["integrity"]):
        raise ValueError(
            f"{name}@{told['version']} has the integrity {found}, not {integrity or told['integrity']}."
        )
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        files = {
            member.name.partition("/")[2]: content.read()
            for member in opened
            if (content := opened.extractfile(member)) is not None
        }
    return NpmPackage(name, told["version"], found, files)
