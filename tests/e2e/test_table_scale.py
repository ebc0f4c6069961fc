"""A large table is filled, paged, queried and emptied; `pytest -m load` prints what a million rows cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.table_scale import print_figures, scale

pytestmark = pytest.mark.disk

ROWS = 6_000


@pytest.mark.slow
async def test_a_table_of_some_thousand_rows_answers_everything_right(tmp_path: Path) -> None:
    figures = {figure.what: figure.note for figure in await scale(tmp_path / "data", ROWS)}
    assert figures["query, a unique value"] == "1 of 1"
    assert figures["query, a range of a unique column"] == "6 of 6"
    half = int(figures["query without an index, half match"].partition(" of ")[2].replace(",", ""))
    assert ROWS * 0.4 < half < ROWS * 0.6
    assert int(figures["delete 10,000 by query"].partition(" ")[0]) > ROWS * 0.4


@pytest.mark.load
@pytest.mark.timeout(1800)
async def test_what_a_million_rows_cost(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        await print_figures(1_000_000)
