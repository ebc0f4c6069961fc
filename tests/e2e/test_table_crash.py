"""A unique column holds under two hundred writers and kill -9: no value twice, no acknowledged row lost.

`pytest -m load tests/e2e/test_table_crash.py` runs the long form: ten rounds, and prints what was kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest
import trio

from tests.e2e.server_process import OWNER, serving
from tests.e2e.table_writers import audit, prepare
from tests.e2e.test_crash import FAULTY, SYNC_S, UNTHROTTLED, checked
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.disk


async def rounds(data_dir: Path, count: int, seed: int) -> tuple[int, int, int]:
    """Kill the server while all write, read everything back, and check the store; again and again."""
    random = Random(seed)
    acknowledged = refused = rows = 0
    for number in range(count):
        env = {**OWNER, "CRASH_SYNC_S": SYNC_S[number % 2]}
        async with serving(data_dir, *UNTHROTTLED, program=FAULTY, env=env) as server:
            books = await prepare(server.url, server.token, seed * 1000 + number)
            books.target = random.randint(400, 2000)
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(books.run)
                    await books.reached.wait()
                    await trio.sleep(random.uniform(0, 0.02))
                    await server.kill()
            books.session.close()
        await checked(data_dir)
        async with serving(data_dir, *UNTHROTTLED) as server:
            rows += await audit(server.url, server.token, books)
            assert await server.terminate() == 0
        acknowledged += books.acknowledged
        refused += books.refused
    return acknowledged, refused, rows


@pytest.mark.slow
async def test_no_value_stands_twice_and_no_row_is_lost_by_a_kill(tmp_path: Path) -> None:
    acknowledged, refused, rows = await rounds(tmp_path / "data", 1, seed=17)
    assert acknowledged >= 400
    assert refused > 100, "most of what was sent was a race"
    assert rows > 100


@pytest.mark.load
@pytest.mark.timeout(900)
async def test_no_value_stands_twice_in_ten_rounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acknowledged, refused, rows = await rounds(tmp_path / "data", 10, seed=18)
    with capsys.disabled():
        sys.stdout.write(
            f"\n10 kills, 200 writers: {acknowledged} writes acknowledged, {refused} refused as duplicates, "
            f"{rows} rows read back, no value twice\n"
        )
