"""Column types are chosen from the whole file, and every unused row has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import vega_datasets

from trunkline.bench.errors import BenchError
from trunkline.bench.history import to_iso
from trunkline.bench.measurements import Measurements, read_measurements
from trunkline.bench.time_formats import TimeReader

NOW_MS = 1_800_000_000_000
SEATTLE = Path(vega_datasets.__file__).parent / "_data" / "seattle-temps.csv"


def read(tmp_path: Path, text: str, *, time: str = "time", device: str | None = None) -> Measurements:
    file = tmp_path / "probe.csv"
    file.write_text(text, encoding="utf-8")
    return read_measurements([file], time_column=time, device_column=device, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2010-01-02T03:04:05.678Z"], "2010-01-02T03:04:05.678Z"),
        (["2010-01-02T03:04:05+02:00"], "2010-01-02T01:04:05.000Z"),
        (["2010-01-02"], "2010-01-02T00:00:00.000Z"),
        (["2010/01/02 03:04"], "2010-01-02T03:04:00.000Z"),
        (["2010/01/02 03:04:05"], "2010-01-02T03:04:05.000Z"),
        (["2010/1/2 3:04"], "2010-01-02T03:04:00.000Z"),
        (["01/02/2010 03:04", "01/13/2010 03:04"], "2010-01-02T03:04:00.000Z"),
        (["01/02/2010", "13/02/2010"], "2010-02-01T00:00:00.000Z"),
        (["02.01.2010 03:04:05"], "2010-01-02T03:04:05.000Z"),
        (["Jan 2 2010"], "2010-01-02T00:00:00.000Z"),
        (["20100102"], "2010-01-02T00:00:00.000Z"),
        (["2010"], "2010-01-01T00:00:00.000Z"),
        (["1262401445"], "2010-01-02T03:04:05.000Z"),
        (["1262401445.6789"], "2010-01-02T03:04:05.678Z"),
        (["1262401445678"], "2010-01-02T03:04:05.678Z"),
        (["1262401445678901"], "2010-01-02T03:04:05.678Z"),
        (["1262401445678901234"], "2010-01-02T03:04:05.678Z"),
    ],
)
def test_times(cells: list[str], first: str) -> None:
    reader = TimeReader.choose([*cells, ""])
    time_ms = reader.read(cells[0])
    assert time_ms is not None
    assert to_iso(time_ms) == first
    assert reader.read("") is None
    assert reader.read("soon") is None


def test_times_that_can_be_read_in_two_ways_are_not_guessed() -> None:
    cells = ["01/02/2010", "03/04/2010"]
    with pytest.raises(BenchError, match="say which"):
        TimeReader.choose(cells)
    assert TimeReader.choose(cells, time_format="%d/%m/%Y").read("01/02/2010") == 1_264_982_400_000
    with pytest.raises(BenchError, match="which is not a known format"):
        TimeReader.choose(["soon", "later"])


def test_types_are_those_of_the_whole_column(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "time,n,b,s,code,big,mixed,gone,Größe in °C\n"
        "10000,1,TRUE,x,007,1,1,,1.5\n"
        "10001,NaN,,1,8,12345678901234567890,true,,-1e3\n"
        "10002,-.5,false,,9,3,2,,.5\n",
    )
    series = found.series["probe"]
    assert series.attributes == {
        "n": "number",
        "b": "boolean",
        "s": "string",
        "code": "string",
        "big": "string",
        "mixed": "string",
        "Gr__e_in__C": "number",
    }
    assert series.rows[1] == {
        "s": "1",
        "code": "8",
        "big": "12345678901234567890",
        "mixed": "true",
        "Gr__e_in__C": -1000.0,
    }
    assert series.rows[0]["b"] is True
    assert isinstance(series.rows[0]["n"], int)
    assert series.times == [10_000_000, 10_001_000, 10_002_000]
    assert "column 'gone' has no values and is left out" in " ".join(found.notes)
    assert (found.rows_read, found.rows, found.values) == (3, 3, 7 + 5 + 6)


def test_devices_from_a_column_and_rows_in_the_order_of_their_times(tmp_path: Path) -> None:
    found = read(tmp_path, "time;who;v\n30;a;3\n10;b;1\n10;a;1\n30;a;4\n;a;5\n20;;6\n20;b;\n", device="who")
    a, b = found.series["a"], found.series["b"]
    assert (a.times, [row["v"] for row in a.rows]) == ([10_000, 30_000, 30_000], [1, 3, 4])
    assert (b.times, b.rows) == ([10_000], [{"v": 1}])
    assert (found.repeated, a.repeated, b.repeated) == (1, 1, 0)
    assert sum(found.skipped.values()) == 3
    assert found.skipped["no readable time"] == found.skipped["no values"] == 1


def test_times_that_the_api_does_not_take_are_left_out(tmp_path: Path) -> None:
    ahead = NOW_MS + 86_400_001
    found = read(tmp_path, f"time,v\n-1000000000000,1\n{NOW_MS},2\n{ahead},3\n{ahead - 1},4\n")
    assert found.series["probe"].times == [NOW_MS, ahead - 1]
    assert sorted(found.skipped) == [
        "before 1970 (the API counts times from there)",
        "more than a day ahead (the API refuses these)",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("time,v\n", "has a header and no rows"),
        ("when,v\n1,2\n", "has no column 'time'; it has: when, v"),
        ("time,v,v\n1,2,3\n", "names a column twice"),
        ("time,v\n1,2,3\n", "row 2 has 3 cells for 2 columns"),
        ("time,v\n1,\n", "no column with values"),
        ('time,v\n1,"a"b\n', "cannot be read as CSV"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(BenchError, match=sentence):
        read(tmp_path, text)


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="cannot be read"):
        read_measurements([tmp_path / "none.csv"], time_column="t", now_ms=NOW_MS)


def test_a_year_of_hourly_temperatures_that_a_public_package_ships() -> None:
    found = read_measurements([SEATTLE], time_column="date", now_ms=NOW_MS)
    series = found.series["seattle-temps"]
    assert (found.rows_read, found.rows, found.repeated, dict(found.skipped)) == (8759, 8759, 0, {})
    assert series.attributes == {"temp": "number"}
    assert to_iso(series.times[0]) == "2010-01-01T00:00:00.000Z"
    assert series.rows[0] == {"temp": 39.4}
