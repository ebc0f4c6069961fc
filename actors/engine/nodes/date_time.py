"""DateTimeNode: moves, rounds, compares and writes dates, and takes them apart.

`sourcePath` leads to milliseconds, an ISO text, or a text in the format `sourceFormatString`; without it the date is
the time of the run. A source without an offset is in UTC. The date is put into the zone `timezone` (UTC) before the
operation, so that a day starts where the zone has it. A date as a result is a text in `resultFormatString`, or in
`YYYY-MM-DDTHH:mm:ssZ`, which has no milliseconds. As in moment, January is the month 0 and Sunday the day 0 of the
week. `diff` is the source minus the date at `diffDataPath`, in milliseconds whatever `unit` says. What is no date fails
the run.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trunkline.actors.core.formulas.date_arithmetic import UNITS, Unit, plus, start_of, with_part
from trunkline.actors.core.formulas.date_parsing import parse_in_format
from trunkline.actors.core.formulas.dates import DEFAULT_FORMAT, parse_date, written_date, zone_of
from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.values import to_text
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    ChoiceSetting,
    Config,
    NumberSetting,
    PathSetting,
    TemplateSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    choice_of,
    needed_path,
    number_reader,
    path_of,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused

TYPE: Final = "DateTimeNode"

_SOURCE_PATH: Final = PathSetting("sourcePath")
_SOURCE_FORMAT_STRING: Final = TemplateSetting("sourceFormatString")
_NUMBER_VALUE: Final = NumberSetting("numberValue")
_UNIT: Final = TextSetting("unit")
_DIFF_DATA_PATH: Final = PathSetting("diffDataPath")
_DIFF_DATA_FORMAT_STRING: Final = TemplateSetting("diffDataFormatString")
_TIMEZONE: Final = TemplateSetting("timezone")
_RESULT_FORMAT_STRING: Final = TemplateSetting("resultFormatString")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_Operation = Callable[[Visit, datetime], Any]
_ReadDate = Callable[[Visit], datetime]


def prepare(config: Config) -> NodeStep:
    operation = _OPERATIONS[choice_of(config, _OPERATION)](config)
    source = _date(config, _SOURCE_PATH, _SOURCE_FORMAT_STRING)
    zone, form = text_reader(config, _TIMEZONE), text_reader(config, _RESULT_FORMAT_STRING)
    result = path_of(config, RESULT)

    def step(visit: Visit) -> int:
        try:
            tz = zone_of(zone(visit) or "UTC")
        except EvaluationError as error:
            raise refused(f"config.timezone: {error}") from None
        try:
            value = operation(visit, source(visit).astimezone(tz))
        except (ValueError, OverflowError):
            raise refused("config.operation: the result is not in the years 1 to 9999.") from None
        if isinstance(value, datetime):
            try:
                value = written_date(value, form(visit) or DEFAULT_FORMAT)
            except EvaluationError as error:
                raise refused(f"config.resultFormatString: {error}") from None
        visit.put(result, value)
        return 0

    return step


def _date(config: Config, path_setting: PathSetting, format_setting: TemplateSetting) -> _ReadDate:
    """Reads the date at a path: without a path, the time of the run."""
    path, form = path_of(config, path_setting), text_reader(config, format_setting)

    def read(visit: Visit) -> datetime:
        now = _EPOCH + timedelta(milliseconds=visit.run.now_ms)
        if path is None:
            return now
        value = path.get(visit.payload)
        written = form(visit)
        if not written:
            date = parse_date(value)
        elif not isinstance(value, str | int | float):
            date = None
        else:
            try:
                date = parse_in_format(to_text(value), written, now)
            except EvaluationError as error:
                raise refused(f"config.{format_setting}: {error}") from None
        if date is None:
            what = f"not a valid date in the format {shortened(written)}" if written else "not a valid date"
            raise refused(f"config.{path_setting}: leads to {shortened(value)}, which is {what}.")
        return date

    return read


def _unit(config: Config) -> Unit:
    word = text_of(config, _UNIT) or "year"
    unit = UNITS.get(word) or UNITS.get(word.removesuffix("s"))
    if unit is None:
        raise Unusable(f"config.unit: is {shortened(word)}; give one of {', '.join(UNITS)}.")
    return unit


def _amount(config: Config) -> Callable[[Visit], float]:
    read = number_reader(config, _NUMBER_VALUE)
    if read is None:
        raise Unusable("config.numberValue: is not set; give a number or a template.")
    return read


def _move(sign: int) -> Callable[[Config], _Operation]:
    def of(config: Config) -> _Operation:
        unit, amount = _unit(config), _amount(config)
        return lambda visit, at: plus(at, unit, sign * amount(visit))

    return of


def _set(config: Config) -> _Operation:
    unit, value = _unit(config), _amount(config)
    return lambda visit, at: with_part(at, unit, value(visit))


def _get(config: Config) -> _Operation:
    unit = _unit(config)
    return lambda _, at: unit.read(at)


def _start(config: Config) -> _Operation:
    unit = _unit(config)
    return lambda _, at: start_of(at, unit)


def _difference(config: Config) -> _Operation:
    needed_path(config, _DIFF_DATA_PATH)
    other = _date(config, _DIFF_DATA_PATH, _DIFF_DATA_FORMAT_STRING)
    return lambda visit, at: (at - other(visit)) // _MILLISECOND


def _parts(at: datetime) -> list[int]:
    return [at.year, at.month - 1, at.day, at.hour, at.minute, at.second, at.microsecond // 1000]


def _plain(operation: Callable[[datetime], Any]) -> Callable[[Config], _Operation]:
    """An operation that needs the date only."""
    return lambda _config: lambda _visit, at: operation(at)


_FIELDS: Final = ("years", "months", "date", "hours", "minutes", "seconds", "milliseconds")
_OPERATIONS: Final[dict[str, Callable[[Config], _Operation]]] = {
    "add": _move(1),
    "subtract": _move(-1),
    "format": _plain(lambda at: at),
    "getDatePart": _get,
    "setDatePart": _set,
    "diff": _difference,
    "daysInMonth": _plain(lambda at: monthrange(at.year, at.month)[1]),
    "startOfTime": _start,
    "startOf": _start,
    "toArray": _plain(_parts),
    "toObject": _plain(lambda at: dict(zip(_FIELDS, _parts(at), strict=True))),
    "unixTimestampSeconds": _plain(lambda at: (at - _EPOCH) // timedelta(seconds=1)),
    "unixTimestampMilliseconds": _plain(lambda at: (at - _EPOCH) // _MILLISECOND),
}

_OPERATION: Final = ChoiceSetting("operation", *_OPERATIONS)
FORM: Final = Form(
    "logic",
    (
        _OPERATION,
        _SOURCE_PATH,
        _SOURCE_FORMAT_STRING,
        _NUMBER_VALUE,
        _UNIT,
        _DIFF_DATA_PATH,
        _DIFF_DATA_FORMAT_STRING,
        _TIMEZONE,
        _RESULT_FORMAT_STRING,
        RESULT,
    ),
)
