"""A file of an archive as a table: CSV, or Parquet.

Owns the columns, and how values are written in each format. Does not own where the file lies, nor its rows.

Parquet needs the library pyarrow, which is optional and only loaded where it is used. In Parquet numbers are doubles,
so whole numbers beyond 2**53 are rounded; CSV keeps them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from trunkline.actors.core.values.csv_text import CsvLines
from trunkline.actors.core.values.timestamps import iso
from trunkline.limits.table import Limits

_GROUP_ROWS_MAX: Final = 5000
"""Rows that are kept in memory until they are written as a group."""
_GROUP_BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of such a group: long texts fill it earlier."""
ColumnType = Literal["id", "milliseconds", "time", "string", "number", "boolean", "gps", "blob", "json"]
Format = Literal["csv", "parquet"]


class Column(NamedTuple):
    """A column of a file. `milliseconds` since 1970; `time` a date and time; `json` any value as JSON text."""

    name: str
    type: ColumnType

    def described(self) -> dict[str, str]:
        """The entry of the column in the manifest."""
        return {"name": self.name, "dataType": self.type}


class Sink(Protocol):
    """What the bytes of a file are written to."""

    def write(self, piece: bytes) -> int:
        """Add a piece."""
        ...

    def flush(self) -> None:
        """Write what is buffered."""
        ...


class TableFile(Protocol):
    """A file that is being written."""

    rows: int

    def add(self, values: Sequence[Any]) -> None:
        """Add a row: a value for each column, None for none. Times are given in milliseconds, JSON as text."""
        ...

    def finish(self) -> None:
        """Write what is left."""
        ...


def open_table(format: Format, sink: Sink, columns: Sequence[Column], limits: Limits) -> TableFile:
    """Begin a file."""
    return _Csv(sink, columns) if format == "csv" else _Parquet(sink, columns, limits)


class _Csv:
    """CSV as all exports are (`core/values/csv_text.py`)."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        self.rows = 0
        self._sink = sink
        self._lines = CsvLines()
        self._convert = [_AS_TEXT.get(column.type) for column in columns]
        sink.write(self._lines.line(column.name for column in columns))

    def add(self, values: Sequence[Any]) -> None:
        self._sink.write(self._lines.line(_converted(self._convert, values)))
        self.rows += 1

    def finish(self) -> None:
        pass


class _Parquet:
    """Parquet, in groups of rows that are bounded in number and size."""

    def __init__(self, sink: Sink, columns: Sequence[Column], limits: Limits) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        types: Mapping[ColumnType, Any] = {
            "milliseconds": pa.int64(),
            "time": pa.timestamp("ms", "UTC"),
            "number": pa.float64(),
            "boolean": pa.bool_(),
        }
        self.rows = 0
        self._pa = pa
        self._convert = [_AS_TYPED.get(column.type) for column in columns]
        self._schema = pa.schema([(column.name, types.get(column.type, pa.string())) for column in columns])
        self._writer = parquet.ParquetWriter(_File(sink), self._schema, compression="zstd")
        self._limits = limits
        self._group: list[Sequence[Any]] = []
        self._group_bytes = 0

    def add(self, values: Sequence[Any]) -> None:
        row = _converted(self._convert, values)
        self._group.append(row)
        self._group_bytes += sum(len(value) for value in row if isinstance(value, str)) + 8 * len(row)
        self.rows += 1
        if len(self._group) >= _GROUP_ROWS_MAX or self._group_bytes >= _GROUP_BYTES_MAX:
            self._write()

    def finish(self) -> None:
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._group:
            arrays = [
                self._pa.array(values, type=field.type)
                for values, field in zip(zip(*self._group, strict=True), self._schema, strict=True)
            ]
            self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))
            self._group, self._group_bytes = [], 0


class _File:
    """The file object that pyarrow writes to; it is never read."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._size = 0

    def write(self, piece: Any) -> int:
        content = bytes(piece)
        self._size += len(content)
        return self._sink.write(content)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


_Convert = Callable[[Any], Any]
_AS_TEXT: Final[Mapping[ColumnType, _Convert]] = {"time": iso}
_AS_TYPED: Final[Mapping[ColumnType, _Convert]] = {"number": float}


def _converted(converts: Sequence[_Convert | None], values: Sequence[Any]) -> list[Any]:
    return [
        value if convert is None or value is None else convert(value)
        for convert, value in zip(converts, values, strict=True)
    ]
