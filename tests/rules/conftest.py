"""The files that the rules check: those that git tracks or would add, so that build artefacts do not count."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest


@pytest.fixture(scope="session")
def project_files(checkout: Path) -> list[PurePosixPath]:
    """Every file of the project, relative to the checkout: committed, or new and not ignored."""
    command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listing = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True).stdout
    names = sorted(set(filter(None, listing.split("\0"))))
    return [PurePosixPath(name) for name in names if (checkout / name).is_file()]


@pytest.fixture(scope="session")
def python_files(project_files: list[PurePosixPath]) -> list[PurePosixPath]:
    """The Python sources among them."""
    return [file for file in project_files if file.suffix == ".py"]
