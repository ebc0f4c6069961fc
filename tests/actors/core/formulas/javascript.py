"""The JavaScript that the languages of workflows are compared with: QuickJS, in this process.

Values travel as JSON in both directions. Results carry a mark for what JSON cannot say: undefined, NaN and the
infinities.
"""

from __future__ import annotations

import json
import math
from typing import Any

import quickjs

from trunkline.actors.core.formulas.values import UNDEFINED

_MARKS = """
const marked = (value) => {
    if (value === undefined) return {undefined: 1};
    if (typeof value === "number" && !isFinite(value)) return {number: String(value)};
    return {value};
};
globalThis.answer = (source, payload) => {
    const root = JSON.parse(payload);
    return JSON.stringify(marked(new Function("root", "return (" + source + ")")(root)));
};
"""


class JavaScript:
    """Evaluates expressions over a payload, which is the variable `root` in them."""

    def __init__(self) -> None:
        self._context = quickjs.Context()
        self._context.eval(_MARKS)
        self._answer = self._context.get("answer")

    def evaluate(self, source: str, payload: Any) -> Any:
        result = json.loads(self._answer(source, json.dumps(payload)))
        if "undefined" in result:
            return UNDEFINED
        return float(result["number"].replace("Infinity", "inf")) if "number" in result else result["value"]


def same(one: Any, other: Any) -> bool:
    """Whether two results are one value of JavaScript: 3 and 3.0 are, 1 and true are not, NaN is like NaN."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        # JavaScript writes more digits of a large whole number than its double has.
        one, other = float(one), float(other)
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)
