"""Makes `template_cases.json`: templates, number formats and dates with what the original JavaScript makes of them.

The file is made again after a change here, in a folder that holds the four packages of npm, unpacked:

    for package in handlebars@4.7.8 d3-format@3.1.0 moment@2.30.1 moment-timezone@0.5.45; do
        mkdir -p $package && tar xzf $(npm pack $package) -C $package --strip-components 1
    done
    python -m tests.actors.core.formulas.template_cases FOLDER tests/actors/core/formulas/template_cases.json
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import quickjs

STORED_CASES = 1500
NOW_MS = 1_731_000_000_000

SOURCES = (
    "handlebars@4.7.8/dist/handlebars.js",
    "d3-format@3.1.0/dist/d3-format.js",
    "moment@2.30.1/moment.js",
    "moment-timezone@0.5.45/builds/moment-timezone-with-data.js",
)

HELPERS = """
var number = Number, text = function (x) { return x == null ? '' : String(x) };
var table = {
  add: function (a, b) { return number(a) + number(b) }, subtract: function (a, b) { return number(a) - number(b) },
  multiply: function (a, b) { return number(a) * number(b) }, divide: function (a, b) { return number(a) / number(b) },
  ceil: function (a) { return Math.ceil(number(a)) }, floor: function (a) { return Math.floor(number(a)) },
  max: function (a, b) { return Math.max(number(a), number(b)) },
  min: function (a, b) { return Math.min(number(a), number(b)) },
  upper: function (a) { return text(a).toUpperCase() }, lower: function (a) { return text(a).toLowerCase() },
  trim: function (a) { return text(a).trim() },
  substring: function (a, b, c) { return text(a).substring(b, typeof c === 'object' ? undefined : c) },
  join: function (a, b) { return Array.isArray(a) ? a.join(b) : text(a) },
  encodeURIComponent: function (a) { return encodeURIComponent(a) }, encodeURI: function (a) { return encodeURI(a) },
  jsonEncode: function (a) { return new Handlebars.SafeString(text(JSON.stringify(a))) },
  array: function () { return Array.prototype.slice.call(arguments, 0, -1) },
  obj: function (options) { return options.hash },
};
var tests = {
  eq: function (a, b) { return a === b }, ne: function (a, b) { return a !== b },
  gt: function (a, b) { return a > b }, gte: function (a, b) { return a >= b },
  lt: function (a, b) { return a < b }, lte: function (a, b) { return a <= b },
};
Object.keys(tests).forEach(function (name) {
  table[name] = function (a, b, options) {
    var result = tests[name](a, b);
    return options.fn ? (result ? options.fn(this) : options.inverse(this)) : result;
  };
});
Handlebars.registerHelper(table);
function render(template, payload) {
  try { return JSON.stringify(Handlebars.compile(template)(JSON.parse(payload))) } catch (error) { return null }
}
var english = d3.formatLocale({decimal: '.', thousands: ',', grouping: [3], currency: ['$', ''], minus: '-'});
function number_text(format, value) {
  try { return english.format(format)(value) } catch (error) { return null }
}
function date_text(format, value, zone) { return moment.tz(value, zone).format(format) }
function relative_text(value, to) { return moment.utc(value).from(moment.utc(to)) }
"""

# fmt: off
PAYLOADS: list[Any] = [
    {
        "a": 1, "b": "<b>\"x\" & 'y'`=</b>", "c": {"d": {"e": "deep", "f": [10, 20]}, "g": "", "a": "inner"},
        "list": ["p", "q", "r"], "rows": [{"n": "one", "v": 1.5, "sub": [1, 2]}, {"n": "two", "v": 0, "sub": []}],
        "none": None, "yes": True, "no": False, "zero": 0, "empty": "", "hollow": [], "bare": {}, "half": 0.5,
        "a key": {"x y": "spaced"}, "text": "  Grüße, 日本 😀  ", "big": 1e21, "tiny": 1.5e-7,
    },
    {
        "a": "10", "b": "plain", "c": {"d": {"e": False, "f": []}, "g": 7}, "yes": "yes", "no": 0, "zero": -0.0,
        "list": [0, "", False, [1, [2, 3]], {"z": 1}], "rows": [{"n": "<i>", "v": -2.25, "sub": ["s"]}],
        "none": None, "empty": [], "hollow": {}, "bare": {"k": "v", "w": [True]}, "a key": {"x y": 5},
        "text": "a%20b/c?d=é", "big": 123456789012345680000, "tiny": 0.1, "half": "0.5",
    },
    {"rows": [[1, 2], [3], []], "c": [{"d": {"e": "in a list"}}], "list": {"x": 1, "y": {"n": 2}}, "a": ""},
    [1, "two", {"a": 3}],
    "text",
]
WORDS = ("x", "Hello, ", " ", "  ", "\n", "\n  ", " \n", "\t", "\r\n", "- ", " }", "{ ", "a\nb", "'", "&")
LITERALS = ("1", "0", "-2.5", '"a"', "'b\\'c'", '"x \\"y\\""', "true", "false", "null", "undefined", '""', "10")
# fmt: on
NAMES = "a b c list rows none yes no zero empty hollow bare text n v sub big tiny half d e missing"
MORE_PATHS = (
    "c.d.e c.d.f.[0] c/d/e c.g rows.[0].n rows.[1].v list.[1] list.length this . ./a this.a ../a ../../a ../this"
    " @index @key @first @last @root.a @root.c.d.e @../index @root missing.deep text.length text.[2]"
)
PATHS = (*NAMES.split(" "), "[a key].[x y]", *MORE_PATHS.split(" "))
ONE = ("ceil", "floor", "upper", "lower", "trim", "encodeURI", "encodeURIComponent", "jsonEncode")
TWO = "add subtract multiply divide max min eq ne gt gte lt lte lookup join array substring"
DATE_TOKENS = (
    "M Mo MM MMM MMMM Q Qo D Do DD DDD DDDo DDDD d do dd ddd dddd e E w wo ww W Wo WW YY YYYY YYYYYY Y y N gg gggg"
    " GG GGGG A a H HH h hh k kk m mm s ss S SS SSS SSSSSS z Z ZZ X x LT LTS L LL LLL LLLL l ll lll llll"
    " [at] [o'clock] \\M hmm Hmmss q"
)
TESTS = ("eq", "ne", "gt", "gte", "lt", "lte")


class Writer:
    """Writes random templates."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.parameters: list[str] = []

    def template(self) -> str:
        return self.statements(0)

    def statements(self, level: int) -> str:
        return "".join(self.statement(level) for _ in range(self.random.randint(0 if level else 1, 4)))

    def statement(self, level: int) -> str:
        pick = self.random.random()
        if pick < 0.35:
            return "".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, 3)))
        if pick < 0.6 or level > 3:
            return self.output()
        if pick < 0.66:
            return self.braces(self.random.choice(("! note ", "!-- {{a}} --", "!")))
        if pick < 0.69:
            return self.random.choice(("\\", "\\\\")) + self.output()
        return self.block(level)

    def braces(self, inner: str) -> str:
        left, right = (self.random.choice(("", "", "", "~")) for _ in range(2))
        return "{{" + left + inner + right + "}}"

    def output(self) -> str:
        pick = self.random.random()
        inner = (
            self.path()
            if pick < 0.6
            else self.call()
            if pick < 0.95
            else self.random.choice(('"a"', "12", "true"))
        )
        kind = self.random.random()
        if kind < 0.3:
            # The dot: the original adds up two numbers that are written raw one after the other.
            return "." + self.braces("{" + inner + "}" if kind < 0.2 else "&" + inner)
        return self.braces(self.space(inner))

    def space(self, inner: str) -> str:
        return self.random.choice((inner, inner, f" {inner} ", f"\n{inner}"))

    def path(self) -> str:
        if self.parameters and self.random.random() < 0.4:
            return self.random.choice(self.parameters) + self.random.choice(("", "", ".n", ".a"))
        return self.random.choice(PATHS)

    def value(self, level: int = 0) -> str:
        pick = self.random.random()
        if pick < 0.55 or level > 2:
            return self.path()
        return self.random.choice(LITERALS) if pick < 0.8 else f"({self.call(level + 1)})"

    def call(self, level: int = 0) -> str:
        pick = self.random.random()
        if pick < 0.4:
            return f"{self.random.choice(ONE if level == 0 else ONE[:-1])} {self.value(level)}"
        if pick < 0.9 or level > 0:
            return f"{self.random.choice(TWO.split(' '))} {self.value(level)}  {self.value(level)}"
        return f"jsonEncode (obj k = {self.value(level)})"

    def block(self, level: int) -> str:
        name = self.random.choice(
            ("if", "if", "unless", "each", "each", "with", "test", "section", "inverted")
        )
        if name == "section":
            head = self.random.choice(("rows", "c", "yes", "none", "c.d", "list", "zero", "missing"))
            return self.whole("#", head, head, level, [])
        if name == "inverted":
            head = self.random.choice(("rows", "c.d", "yes", "none"))
            return self.braces("^" + head) + self.statements(level + 1) + self.braces("/" + head)
        if name == "test":
            name = self.random.choice(TESTS)
            return self.whole("#", f"{name} {self.value(1)} {self.value(1)}", name, level, [])
        if name == "if" and self.random.random() < 0.15:
            return self.whole("#", f"if {self.value(1)} includeZero=true", name, level, [])
        parameters: list[str] = []
        if name in ("each", "with") and self.random.random() < 0.3:
            parameters = ["item", "place"][: self.random.randint(1, 2 if name == "each" else 1)]
        subject = (
            self.random.choice(("list", "rows", "c", "bare", "hollow", "sub", "../rows"))
            if name in ("each", "with") and self.random.random() < 0.7
            else self.value(1)
        )
        head = f"{name} {subject}" + (f" as |{' '.join(parameters)}|" if parameters else "")
        return self.whole("#", head, name, level, parameters)

    def whole(self, mark: str, head: str, name: str, level: int, parameters: list[str]) -> str:
        written = self.braces(mark + head)
        self.parameters += parameters
        written += self.statements(level + 1)
        del self.parameters[len(self.parameters) - len(parameters) :]
        while self.random.random() < 0.2:
            written += self.braces(f"else if {self.value(1)}") + self.statements(level + 1)
        if self.random.random() < 0.4:
            written += self.braces(self.random.choice(("else", "^", " else "))) + self.statements(level + 1)
        return written + self.braces("/" + name)


def number_cases(seed: int, count: int) -> list[tuple[str, float]]:
    """Random formats of d3 with numbers."""
    choice = random.Random(seed).choice
    values = (
        0,
        1,
        -1,
        0.5,
        1.5,
        2.5,
        -2.5,
        1.005,
        42,
        999.5,
        999999.5,
        1234567.891,
        -1234.5,
        1e-7,
        1.5e-9,
        0.00012345,
        123456789012,
        -0.0,
        0.1,
        1 / 3,
        2 / 3,
        99.995,
        255,
        65535.7,
        1e-26,
        9.99e26,
        1.5e30,
        2e25,
    )
    found = []
    for _ in range(count):
        form = (
            choice(("", "", "*<", "_^", "0=", ">", " ^"))
            + choice(("", "", "+", "-", "(", " "))
            + choice(("", "", "$", "#"))
        )
        form += choice(("", "", "0")) + choice(("", "", "8", "12", "20")) + choice(("", ","))
        form += choice(("", "", ".0", ".1", ".2", ".3", ".6", ".20")) + choice(("", "~"))
        type = choice(("", "f", "f", "d", "e", "g", "r", "s", "p", "%", "x", "X", "o", "b", "n", "c"))
        # The oracle has no toLocaleString for large whole numbers.
        found.append((form + type, choice(values[:-4] if type == "d" else values)))
    return found


def date_cases(seed: int, count: int) -> list[tuple[str, int, str]]:
    """Random formats of moment with dates and zones."""
    chance = random.Random(seed)
    tokens = DATE_TOKENS.split(" ")
    zones = (
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "America/Chicago",
    )
    found = []
    for _ in range(count):
        form = chance.choice((" ", "-", "/", ", ", "")).join(
            chance.choice(tokens) for _ in range(chance.randint(1, 4))
        )
        found.append((form, chance.randint(0, 2_050_000_000_000), chance.choice(zones)))
    return found


def relative_cases(seed: int, count: int) -> list[int]:
    """Random distances in milliseconds, of all sizes."""
    chance = random.Random(seed)
    return [chance.choice((1, -1)) * int(10 ** chance.uniform(2, 12.3)) for _ in range(count)]


def evaluate(folder: Path, templates: list[tuple[str, int]], numbers: int, dates: int) -> dict[str, Any]:
    """The cases with the results of JavaScript."""
    context = quickjs.Context()
    for source in SOURCES:
        context.eval((folder / source).read_text())
    context.eval(HELPERS)
    render, number_text = context.get("render"), context.get("number_text")
    date_text, relative_text = context.get("date_text"), context.get("relative_text")
    texts = [json.dumps(each) for each in PAYLOADS]
    rendered = [(template, number, render(template, texts[number])) for template, number in templates]
    return {
        "payloads": PAYLOADS,
        "templates": [
            [template, number, None if text is None else json.loads(text)]
            for template, number, text in rendered
        ],
        "numbers": [
            [form, value, number_text(form, float(value))] for form, value in number_cases(1, numbers)
        ],
        "dates": [
            [form, at, zone, date_text(form, float(at), zone)] for form, at, zone in date_cases(2, dates)
        ],
        "relative": [
            [away, relative_text(float(NOW_MS + away), float(NOW_MS))] for away in relative_cases(3, dates)
        ],
    }


def templates(seed: int, count: int) -> list[tuple[str, int]]:
    writer = Writer(seed)
    found: list[tuple[str, int]] = []
    while len(found) < count:
        template = writer.template()
        if "{{" in template and len(template) < 400:
            found.append((template, writer.random.choice((0, 0, 0, 1, 1, 2, 3, 4))))
    return found


def main() -> None:
    cases = evaluate(Path(sys.argv[1]), templates(7, STORED_CASES), 400, 400)
    # Templates that the original refuses are left out: it refuses the `}` behind `{{x}}` too.
    cases["templates"] = [each for each in cases["templates"] if each[2] is not None]
    parts = [
        json.dumps(name) + ": [\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in rows) + "\n]"
        for name, rows in cases.items()
    ]
    Path(sys.argv[2]).write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
