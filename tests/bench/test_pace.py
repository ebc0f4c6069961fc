"""The program `pace.py` runs completely, here with small numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bench import pace


@pytest.mark.slow
def test_all_loads_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    little = ["--seconds", "0.3", "--devices", "50", "--connections", "4", "--crowd", "8", "--idle", "20"]
    pace.main(["--work", str(tmp_path), "--sync-delay-ms", "1", *little])
    told = capsys.readouterr().out
    for line in (
        "a handler that does nothing",
        "as fast as they come, 4 connections",
        "half of that, 4 connections",
        "twice that, 8 connections",
        "resident MB before",
        "20 connections, 100 posts/s",
    ):
        assert line in told
    found = re.search(r"([\d,]+) states acknowledged, ([\d,]+) stored", told)
    assert found is not None
    assert found[1] == found[2] != "0"
