"""The helpers of templates and the functions of expressions, for the reference: what each makes of its arguments."""

from __future__ import annotations

from typing import Final

from tests.rules.markdown import code, codes, table
from trunkline.actors.core.formulas.operators import FUNCTIONS
from trunkline.actors.core.formulas.template_functions import CONDITIONS
from trunkline.actors.core.formulas.templates import SERVED

_TEXTS: Final = {
    "add": ("a b", "the sum"),
    "array": ("a b ...", "an array of the values"),
    "ceil": ("a", "the next whole number above"),
    "currentDateTime": ("format tz= locale=", "the time now; without a format in ISO 8601"),
    "decodeBase64": ("text", "the text that was encoded in base64"),
    "decodeURI": ("text", "as `decodeURI` of JavaScript"),
    "decodeURIComponent": ("text", "as `decodeURIComponent` of JavaScript"),
    "defaultTo": ("a b", "`a`, or `b` if `a` is missing, null, empty text or no number"),
    "divide": ("a b", "`a` divided by `b`"),
    "encodeBase64": ("text", "the text in base64"),
    "encodeURI": ("text", "as `encodeURI` of JavaScript"),
    "encodeURIComponent": ("text", "as `encodeURIComponent` of JavaScript"),
    "eq": ("a b", "whether they are the same, of the same type"),
    "evalExpression": (
        "text context",
        "the value of a text that is an expression, on the payload or a context",
    ),
    "floor": ("a", "the next whole number below"),
    "format": (
        "a format",
        "a number in a format of d3, a date in one of Moment.js, an object or array as JSON, other texts as they are",
    ),
    "formatDate": ("date format tz= locale=", "a date in a format of Moment.js"),
    "formatDateRelative": (
        "date other locale=",
        "how far a date is from the other one, or from now, in words",
    ),
    "formatGps": (
        "place format digits",
        "a place in the format `decimal` with so many digits (6) after the points",
    ),
    "gpsDistance": ("place other", "the metres between two places; false if one is no place"),
    "gpsIsPointInside": ("place corners", "whether a place is in the polygon with these corners"),
    "gt": ("a b", "whether `a` is greater"),
    "gte": ("a b", "whether `a` is greater or equal"),
    "includes": ("a b", "whether the text, array or object `a` has `b` in it"),
    "indexByKey": (
        "array value key",
        "the position of the first object with this value at the key (`key`), or -1",
    ),
    "join": ("array separator", "the items as one text, with the separator (a comma) between them"),
    "jsonDecode": ("text", "the value of a text that is JSON"),
    "jsonEncode": ("a indent", "the value as JSON, without escapes for HTML"),
    "last": ("a", "the last item of an array, or character of a text"),
    "length": ("a", "the number of items, characters or fields"),
    "lookup": ("a key", "the item or field of this name"),
    "lower": ("text", "in small letters"),
    "lt": ("a b", "whether `a` is less"),
    "lte": ("a b", "whether `a` is less or equal"),
    "match": ("text pattern", "whether a regular expression of RE2 is found in the text"),
    "max": ("a b ...", "the greatest"),
    "merge": ("a b ...", "one object with the fields of all; later ones count"),
    "min": ("a b ...", "the least"),
    "multiply": ("a b", "the product"),
    "ne": ("a b", "the opposite of `eq`"),
    "obj": ("name=value ...", "an object with these fields"),
    "queryStringEncode": ("object", "the fields as a query of a URL"),
    "scaleLinear": (
        "low high newLow newHigh a",
        "`a` scaled from the range of the first two to that of the next two",
    ),
    "substring": ("text start end", "the characters from a position up to another one"),
    "subtract": ("a b", "`a` less `b`"),
    "template": ("text context", "what a text that is a template writes, on the payload or a context"),
    "titleCase": ("text", "each word with a capital letter"),
    "trim": ("text", "without white space around it"),
    "typeof": ("a", "the name of the type, as in JavaScript"),
    "upper": ("text", "in capital letters"),
    "valueByKey": (
        "array value key name",
        "of the first object with this value at the key (`key`) the field of the name (`value`)",
    ),
}
"""By helper: its arguments, and what it makes."""


def helpers() -> str:
    """Every helper of templates. Raises KeyError for one that has no text here."""
    opens = dict.fromkeys(CONDITIONS, "; opens a block")
    rows = (
        (code(name), _arguments(name), _TEXTS[name][1] + opens.get(name, ""))
        for name in sorted(SERVED, key=str.lower)
    )
    return table(("Helper", "Arguments (those in parentheses may be missing)", "What it makes"), rows)


def _arguments(name: str) -> str:
    names, least = _TEXTS[name][0].split(), SERVED[name].least
    return " ".join([*names[:least], *(f"({each})" for each in names[least:])])


def functions() -> str:
    """The functions of expressions."""
    return codes(list(FUNCTIONS)) + "."
