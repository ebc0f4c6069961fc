"""A private virtual environment for the Python packages of peers, in a directory that the user names.

Owns making it once and finding it again. Nothing is ever installed into the environment that Trunkline runs
in: a web framework among its packages would change what is measured.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from trunkline.bench.peers.programs import Absent, Place

INSTALL_TIMEOUT_S = 600.0
"""Seconds: for pip to fetch and install the packages of one peer."""

_DONE = "installed.txt"


async def environment(work: Path, place: Place, packages: Sequence[str]) -> Path:
    """The ``bin`` directory of an environment with these packages; raises Absent where pip fails."""
    name = hashlib.sha256(" ".join([sys.version, *packages]).encode()).hexdigest()[:12]
    home = work / f"venv-{name}"
    done = home / _DONE
    if not done.exists():
        await place.run([sys.executable, "-m", "venv", "--clear", str(home)])
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            await place.run([*pip, *packages], timeout_s=INSTALL_TIMEOUT_S)
        except Absent as problem:
            raise Absent(f"{', '.join(packages)} cannot be installed: {problem}") from None
        done.write_text("\n".join(packages) + "\n", encoding="utf-8")
    return home / "bin"


async def version(place: Place, bin_directory: Path, package: str) -> str:
    """The installed version of a package of an environment."""
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return await place.run([str(bin_directory / "python"), "-c", program])
