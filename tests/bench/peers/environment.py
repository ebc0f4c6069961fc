"""A separate virtual environment for the Python packages of peers, in a directory chosen by the user.

Owns creating it once and reusing it. Nothing is installed into the environment of Trunkline itself: additional
packages could change the measurement.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from trunkline.bench.programs import ProgramUnavailable, Workspace

INSTALL_TIMEOUT_S = 600.0
"""Seconds: for pip to fetch and install the packages of one peer."""

_DONE = "installed.txt"


async def environment(work: Path, workspace: Workspace, packages: Sequence[str]) -> Path:
    """The ``bin`` directory of an environment with these packages; raises ProgramUnavailable if pip fails."""
    name = hashlib.sha256(" ".join([sys.version, *packages]).encode()).hexdigest()[:12]
    home = work / f"venv-{name}"
    done = home / _DONE
    if not done.exists():
        await workspace.run([sys.executable, "-m", "venv", "--clear", str(home)])
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            await workspace.run([*pip, *packages], timeout_s=INSTALL_TIMEOUT_S)
        except ProgramUnavailable as problem:
            raise ProgramUnavailable(f"{', '.join(packages)} cannot be installed: {problem}") from None
        done.write_text("\n".join(packages) + "\n", encoding="utf-8")
    return home / "bin"


async def version(workspace: Workspace, bin_directory: Path, package: str) -> str:
    """The version of a package in an environment."""
    program = f"import importlib.metadata as m; print(m.version({package!r}))"
    return await workspace.run([str(bin_directory / "python"), "-c", program])
