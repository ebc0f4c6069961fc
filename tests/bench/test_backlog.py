"""The program `backlog.py` runs completely, here with small numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bench import backlog


@pytest.mark.slow
def test_live_states_beside_backlogs_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    little = ["--devices", "20", "--states", "60", "--per-call", "20", "--seconds", "0.3", "--rate", "50"]
    backlog.main(["--work", str(tmp_path), *little])
    printed = capsys.readouterr().out
    for line in ("alone ", "beside backlogs, 1", "alone again", "beside plain arrays, 1"):
        assert f"\n{line}" in printed
    assert printed.count("1,200 states of 20 devices") == 2
    found = re.search(r"([\d,]+) states acknowledged, ([\d,]+) read back", printed)
    assert found is not None
    assert found[1] == found[2] != "0"
