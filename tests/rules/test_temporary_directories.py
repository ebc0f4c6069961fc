"""The directories of tests lie in memory, except those of tests of what is durable."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from tests.conftest import DISK, MEMORY, TEMPORARY_ROOT, temporary_root


def test_memory_is_used_where_there_is_room(tmp_path: Path) -> None:
    if MEMORY.is_mount():
        assert temporary_root(MEMORY, 0) == MEMORY
    assert temporary_root(MEMORY, 2**60) is None
    assert temporary_root(tmp_path, 0) is None
    assert temporary_root(tmp_path / "none", 0) is None


def test_other_temporary_directories_lie_beside_those_of_tests() -> None:
    """Property tests make one for each example, and each of their commits would wait for the disk."""
    assert tempfile.gettempdir() == os.environ.get(TEMPORARY_ROOT, str(DISK))


@pytest.mark.disk
def test_a_test_of_the_disk_is_on_one(tmp_path: Path) -> None:
    assert tmp_path.is_dir()
    assert tmp_path.is_relative_to(DISK)
    assert not tmp_path.is_relative_to(MEMORY)


def test_what_is_durable_is_tested_on_a_disk(checkout: Path) -> None:
    """The tests that the first promise of the README names, and all others of crashes."""
    (promise,) = re.findall(
        r"(?m)^\| \*\*Acknowledged means durable.*$", (checkout / "README.md").read_text()
    )
    named = {checkout / name for name in re.findall(r"tests/[\w/]+\.py", promise)}
    crashes = set((checkout / "tests").rglob("test_*crash*.py"))
    assert len(named) > 3
    files = sorted(named | crashes)
    assert [file.name for file in files if "pytest.mark.disk" not in file.read_text()] == []
