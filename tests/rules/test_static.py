"""The linter, the formatter and the type checker run as tests.

So one command checks everything, a failure shows the output of the tool, and the summary of pytest counts it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# The first run of mypy after an installation reads the sources of every dependency.
MYPY_TIMEOUT_S = 500


def run_tool(*arguments: str, cwd: Path) -> None:
    """Run a module of this interpreter's environment; fail with its output if it reports an error."""
    command = [sys.executable, "-m", *arguments]
    tool = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=MYPY_TIMEOUT_S, check=False
    )
    if tool.returncode != 0:
        said = (tool.stdout + tool.stderr).replace(f"{cwd}/", "")
        pytest.fail(f"{' '.join(arguments)}\n{said}", pytrace=False)


def test_ruff_finds_nothing(checkout: Path) -> None:
    run_tool("ruff", "check", "--output-format=concise", ".", cwd=checkout)


def test_every_file_is_formatted(checkout: Path) -> None:
    run_tool("ruff", "format", "--check", ".", cwd=checkout)


@pytest.mark.first
@pytest.mark.slow
@pytest.mark.timeout(MYPY_TIMEOUT_S + 10)
def test_types_hold_strictly(checkout: Path, linked_tree: Path) -> None:
    """mypy runs inside the linked tree: in the checkout it would take `http/` for the standard library's."""
    config, cache = checkout / "pyproject.toml", checkout / ".mypy_cache"
    options = (f"--config-file={config}", f"--cache-dir={cache}", "--no-error-summary", "--show-error-codes")
    run_tool("mypy", *options, "trunkline", "tests", cwd=linked_tree)
