"""The series query of the peers: the points, the right answer, and that a wrong answer gives no figure."""

from __future__ import annotations

import statistics
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from tests.bench.peers.influxdb import InfluxSeries
from tests.bench.peers.series import (
    ASKED,
    MINUTE_MS,
    STEP_MS,
    Means,
    SeriesPoints,
    SeriesSource,
    ask_series,
    same_means,
)
from tests.bench.peers.trunkline import TrunklineSeries
from tests.bench.peers.web import WebSeries
from tests.bench.test_bench_real_server import EMAIL, PASSWORD
from tests.patience import PATIENCE_S
from trunkline.bench.errors import BenchError
from trunkline.bench.flushed import flush
from trunkline.bench.session import Session
from trunkline.bench.transport import Origin
from trunkline.http.serve import serve
from trunkline.limits.settings import Settings

POINTS = SeriesPoints.until(1_700_000_000_000, devices=2, each=150)


class Exact(SeriesSource):
    """Answers with its own means."""

    def __init__(self, means: Means) -> None:
        self.means = means
        self.asked = 0

    async def store(self, points: SeriesPoints) -> None:
        raise NotImplementedError

    async def ask(self, points: SeriesPoints) -> bytes:
        self.asked += 1
        return msgspec.json.encode([[*key, mean] for key, mean in self.means.items()])

    def read(self, answer: bytes) -> Means:
        return WebSeries(Origin("127.0.0.1", 0, tls=False, prefix="")).read(answer)


def test_the_points_begin_with_a_minute_and_their_means_are_those_of_each_minute() -> None:
    sent = [(device, at, value) for device, points in POINTS.calls() for at, value in points]
    assert len(sent) == 300
    assert POINTS.first_ms % MINUTE_MS == 0
    assert {at for _, at, _ in sent} == set(range(POINTS.first_ms, POINTS.end_ms, STEP_MS))
    assert POINTS.end_ms <= 1_700_000_000_000
    means = POINTS.means()
    assert len(means) == 6
    third = [value for device, at, value in sent if device == 1 and at >= POINTS.first_ms + 2 * MINUTE_MS]
    assert len(third) == 30
    assert means[1, POINTS.first_ms + 2 * MINUTE_MS] == pytest.approx(statistics.fmean(third))


async def test_only_a_right_answer_gives_a_figure() -> None:
    means = POINTS.means()
    right = Exact(means)
    turn = await ask_series(right, POINTS)
    assert (right.asked, len(turn.seconds)) == (ASKED + 1, ASKED)
    assert turn.points_a_second == pytest.approx(300 / statistics.median(turn.seconds))
    key = next(iter(means))
    wrong: list[Means] = [{**means, key: means[key] * 1.000001}, dict(list(means.items())[1:])]
    for some in wrong:
        assert not same_means(some, means)
        with pytest.raises(BenchError, match="its means by minute are not those of the points"):
            await ask_series(Exact(some), POINTS)


def test_the_answer_of_influxdb_is_read() -> None:
    answer = (
        b'{"results":[{"statement_id":0,"series":[{"name":"temperatures","tags":{"device":"1"},'
        b'"columns":["time","mean"],"values":[[60000,1.5],[120000,2]]}]}]}'
    )
    source = InfluxSeries(Origin("127.0.0.1", 0, tls=False, prefix=""))
    assert source.read(answer) == {(1, 60_000): 1.5, (1, 120_000): 2}


async def test_the_server_flushes_when_it_is_told_and_answers_the_question_rightly(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    settings = Settings(
        data_dir=str(tmp_path / "data"),
        port=0,
        admin_email=EMAIL,
        admin_password=PASSWORD,
        log_level="error",
        throttles=False,
    )
    with trio.fail_after(PATIENCE_S):
        serving = await nursery.start(partial(serve, settings, shutdown=trio.sleep_forever))
        session = Session(serving.url)
        await session.login(EMAIL, PASSWORD)
        source = TrunklineSeries(session, await session.create_application("series"))
        points = replace(POINTS, first_ms=SeriesPoints.until(1_690_000_000_000).first_ms)
        await source.store(points)
        await flush(tmp_path / "data")
        assert (await ask_series(source, points)).points_a_second > 0
    with pytest.raises(BenchError, match=r"The control socket in .* cannot be used"):
        await flush(tmp_path)
    nursery.cancel_scope.cancel()
