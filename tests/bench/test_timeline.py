"""The programs of `timeline.py` run completely, here with small numbers, and count the pages in use."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from random import Random

import lmdb
import pytest

from tests.bench import timeline


def test_freed_pages_are_not_in_use(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path / "store"), max_dbs=2, map_size=2**24) as env:
        database = env.open_db(b"values")
        with env.begin(write=True) as writing:
            for number in range(100):
                writing.put(b"%d" % number, bytes(20_000), db=database)
    full = timeline.live_bytes(tmp_path)
    # A value takes its bytes and a header in pages of its own; a few pages more hold the keys.
    assert 100 * 5 * 4096 < full <= 100 * 5 * 4096 + 8 * 4096
    with (
        lmdb.open(str(tmp_path / "store"), max_dbs=2, map_size=2**24) as env,
        env.begin(write=True) as writing,
    ):
        writing.drop(env.open_db(b"values", writing), delete=False)
    assert timeline.live_bytes(tmp_path) <= 2 * 4096
    assert (tmp_path / "store" / "data.mdb").stat().st_size >= full


def test_whether_something_is_flushed_is_seen_in_the_runs(tmp_path: Path) -> None:
    for flushed in (False, True):
        with lmdb.open(str(tmp_path / "store"), max_dbs=2) as env:
            runs = env.open_db(b"runs")
            if flushed:
                with env.begin(write=True) as writing:
                    writing.put(b"key", b"block", db=runs)
        assert timeline.is_flushed(tmp_path) is flushed


@pytest.mark.parametrize("kind", ["uniform", "walk"])
def test_the_values_have_two_decimals(kind: str) -> None:
    values = timeline.values_of(kind, Random(1), 200)
    assert len(values) == 200
    assert all(len(row) == 3 and all(value == round(value, 2) for value in row) for row in values)
    steps = [abs(after[0] - before[0]) for before, after in pairwise(values)]
    assert (max(steps) <= 0.11) is (kind == "walk")


@pytest.mark.slow
def test_all_measurements_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = ["--work", str(tmp_path), "--server-cores", "0"]
    timeline.main(["at-rest", *work, "--states", "2000", "--devices", "2", "--values", "walk"])
    assert re.search(r"2,000 states of three walk numbers, 2 devices: [\d.]+ bytes a state", told(capsys))
    timeline.main(["growth", *work, "--states", "1000", "--devices", "2", "--seconds", "0.2"])
    heading, *lines = [line.split() for line in told(capsys).splitlines() if "creating" not in line]
    assert heading[0] == "states"
    ((states, *figures),) = lines
    assert int(states.replace(",", "")) >= 1000
    assert all(float(figure.replace(",", "")) > 0 for figure in figures)
    assert not list(tmp_path.iterdir())


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


@pytest.mark.slow
def test_only_the_server_with_a_small_window_flushes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timeline.main(
        [
            *("flushing", "--work", str(tmp_path), "--server-cores", "0", "--rounds", "1"),
            *("--seconds", "1", "--devices", "5", "--window-bytes", "2000"),
        ]
    )
    shown = told(capsys)
    assert re.search(r"^without flushing +[\d,]+ +[\d.]+ +[\d.]+", shown, re.MULTILINE)
    assert re.search(r"^with flushing +[\d,]+ +[\d.]+ +[\d.]+", shown, re.MULTILINE)
    assert "p99 with flushing : without (medians): " in shown
