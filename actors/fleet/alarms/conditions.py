"""Conditions of alarm rules: what they need, what they compare, and what they are in words. Pure.

A comparison has two edges: a value past the first one begins to hold, and holds until a value is back behind the
second. The distance between them is the hysteresis, so a value that trembles around a bound is one alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from trunkline.actors.core.query.compile import compile_glob
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.alarms.messages import Severity

Holds = Callable[[Any, bool], bool]
"""Whether a value holds, given the value and whether the one before did."""

Hears = Callable[[str, str], bool]
"""Whether an event holds, given its level and its subject."""

_LEVELS: Final = get_args(Severity)
"""The least severe first."""

_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "attribute": ("attribute", "comparison"),
    "change": ("attribute",),
    "silence": ("seconds",),
    "disconnected": (),
    "event": ("level",),
}
_MAY: Final[Mapping[str, tuple[str, ...]]] = {
    "attribute": ("value", "min", "max", "hysteresis"),
    "change": ("by",),
    "silence": (),
    "disconnected": (),
    "event": ("subject",),
}
_NO_DURATION: Final[Mapping[str, str]] = {
    "change": "a change lasts for no time",
    "silence": "condition.seconds says how long",
    "event": "an event is there at once; who is told later has a step with afterSeconds",
}
"""Types of conditions without a duration, and why."""
_BETWEEN: Final = ("outside", "inside")
_ORDERED: Final = ("above", "atLeast", "below", "atMost")
_WORDS: Final[Mapping[str, str]] = {
    "above": "above",
    "atLeast": "at least",
    "below": "below",
    "atMost": "at most",
    "equals": "equal to",
    "differs": "other than",
}


def check_condition(condition: Doc, duration_s: float) -> None:
    """Raise `Invalid` unless a condition has what its type needs, and nothing else."""
    type = condition["type"]
    for field in _NEEDS[type]:
        if field not in condition:
            raise Invalid(f"condition.{field}: is missing; a condition of type {type} needs it.")
    for field in condition.keys() - {"type", *_NEEDS[type], *_MAY[type]}:
        raise Invalid(f"condition.{field}: does not belong to a condition of type {type}; leave it out.")
    if type == "attribute":
        _check_comparison(condition)
    if type in _NO_DURATION and duration_s:
        raise Invalid(f"durationSeconds: must be 0 for a condition of type {type}: {_NO_DURATION[type]}.")


def _check_comparison(condition: Doc) -> None:
    comparison = condition["comparison"]
    needed = ("min", "max") if comparison in _BETWEEN else ("value",)
    for field in needed:
        if field not in condition:
            raise Invalid(f"condition.{field}: is missing; the comparison {comparison} needs it.")
    for field in {"value", "min", "max"} - set(needed):
        if field in condition:
            raise Invalid(f"condition.{field}: does not belong to the comparison {comparison}; leave it out.")
    if comparison in _BETWEEN and condition["min"] > condition["max"]:
        raise Invalid("condition.min: is larger than condition.max; give the smaller number as min.")
    if comparison in _ORDERED and not _is_number(condition["value"]):
        raise Invalid(f"condition.value: must be a number for the comparison {comparison}.")
    if comparison in ("equals", "differs") and "hysteresis" in condition:
        raise Invalid(f"condition.hysteresis: does not belong to the comparison {comparison}; leave it out.")
    width = condition["max"] - condition["min"] if comparison == "outside" else None
    if width is not None and condition.get("hysteresis", 0) * 2 > width:
        raise Invalid(
            "condition.hysteresis: is more than half of the range, so no value could end the alarm."
        )


def compare(condition: Doc) -> Holds:
    """The comparison of a condition of type `attribute`. A value of another type does not hold."""
    comparison, back = condition["comparison"], condition.get("hysteresis", 0)
    value: Any = condition.get("value")
    if comparison in _BETWEEN:
        low, high = condition["min"], condition["max"]
        if comparison == "outside":
            return _number(lambda n, held: n < low + back * held or n > high - back * held)
        return _number(lambda n, held: low - back * held <= n <= high + back * held)
    if comparison == "above":
        return _number(lambda n, held: n > value - back * held)
    if comparison == "atLeast":
        return _number(lambda n, held: n >= value if not back or not held else n > value - back)
    if comparison == "below":
        return _number(lambda n, held: n < value + back * held)
    if comparison == "atMost":
        return _number(lambda n, held: n <= value if not back or not held else n < value + back)
    if comparison == "equals":
        return lambda given, _held: _is_same(given, value)
    return lambda given, _held: given is not None and not _is_same(given, value)


def changed(condition: Doc, before: Any, value: Any) -> bool:
    """Whether a value differs from the one before as a condition of type `change` wants; the first one does not."""
    if before is None or value is None:
        return False
    by = condition.get("by")
    if by is None:
        return not _is_same(before, value)
    return _is_number(before) and _is_number(value) and abs(value - before) >= by


def hears(condition: Doc) -> Hears:
    """Whether an event is one of those of a condition of type `event`."""
    least, matches = _LEVELS.index(condition["level"]), compile_glob(condition.get("subject", ""))
    return lambda level, subject: _LEVELS.index(level) >= least and matches(subject)


def words_of(condition: Doc) -> str:
    """A condition in words, such as `temperature is above 30`."""
    type, name = condition["type"], condition.get("attribute")
    if type == "silence":
        return f"no sign of life for {_number_text(condition['seconds'])} seconds"
    if type == "disconnected":
        return "disconnected"
    if type == "event":
        above = "" if condition["level"] == _LEVELS[-1] else " or above"
        about = f" about {condition['subject']}" if "subject" in condition else ""
        return f"an event of level {condition['level']}{above}{about}"
    if type == "change":
        by = condition.get("by")
        return f"{name} changes" + ("" if by is None else f" by {_number_text(by)} or more")
    comparison = condition["comparison"]
    if comparison in _BETWEEN:
        low, high = _number_text(condition["min"]), _number_text(condition["max"])
        return f"{name} is {'not ' if comparison == 'outside' else ''}between {low} and {high}"
    return f"{name} is {_WORDS[comparison]} {shown(condition['value'])}"


def shown(value: Any) -> str:
    """A value in a sentence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number_text(value) if isinstance(value, int | float) else str(value)[:100]


def _number(holds: Callable[[float, bool], bool]) -> Holds:
    return lambda given, held: (given.__class__ is float or _is_number(given)) and holds(given, held)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _number_text(value: float) -> str:
    return f"{value:.10g}"
