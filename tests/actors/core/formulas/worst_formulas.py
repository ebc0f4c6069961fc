"""The worst inputs of everything that templates and expressions compute, and how long each holds the event loop:

    .venv/bin/python -m tests.actors.core.formulas.worst_formulas [--only PART] [--over MS]

What is fed is generated from the tables of helpers, blocks, operators and functions, so that the next one is covered
by being in its table. Prints what is over the limit, the longest first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

from tests.actors.core.formulas.worst_values import LIMIT_MS, THREAD_S, VALUES, Held, held, measuring, payload
from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.expression_terms import OPERATORS, SIGNS
from trunkline.actors.core.formulas.expressions import EXPRESSION_CHARS_MAX, VARIABLES_MAX, compile_expression
from trunkline.actors.core.formulas.operators import FUNCTIONS
from trunkline.actors.core.formulas.template_functions import CONDITIONS, Helper
from trunkline.actors.core.formulas.templates import (
    _BUILT_IN_BLOCKS,
    SERVED,
    compile_template,
    compile_variable,
)

MANY: Final = 100
"""Arguments of what takes any number."""
HALF: Final = EXPRESSION_CHARS_MAX // 2
TEXTS: Final = {
    "paths": "{{a.b}}" * 4_000,
    "blocks": "{{#if a}}{{/if}}" * 2_000,
    "open blocks": "{{#if a}}" * 3_000,
    "braces": "{" * 32_000,
    "closing": "}" * 32_000,
    "parentheses": "(" * HALF + ")" * HALF,
    "open": "(" * HALF,
    "sums": "1+" * HALF + "1",
    "powers": "1^" * HALF + "1",
    "signs": "-" * 32_000 + "1",
    "text": "'" + "a" * 32_000 + "'",
    "open text": "'" + "a" * 32_000,
    "digits": "1" * 32_000,
    "nearly a number": "1" * 32_000 + "x",
    "decimals": ".1" * 16_000,
    "spaces before": " " * 32_000 + "?",
    "escapes": "'" + "\\x" * 16_000,
    "quotes": "{{" + "'" * 32_000,
    "open brackets": "{{" + "[" * 32_000,
    "comment": "{{!--" + "-" * 32_000,
    "white space": "{{#if a}}" + " \n" * 16_000,
    "elses": "{{#if a}}" + "{{else if a}}" * 2_000 + "{{/if}}",
    "partials": "{{#*inline 'a'}}{{> a}}{{/inline}}" * 900,
    "nested calls": "{{a " + "(max 1 " * 4_000 + "}}",
    "name": "a" * 32_000,
    "spaces": " " * 32_000,
    "keys": "{{" + "a." * 15_000 + "b}}",
    "brackets": "{{" + "[a]." * 8_000 + "b}}",
    "strings": "{{join '" + "a" * 32_000 + "'}}",
    "arguments": "{{max" + " 1" * 15_000 + "}}",
    "calls": "max(" * 8_000,
    "commas": "max(" + "1," * HALF + "1)",
}
"""Texts that a helper compiles while it evaluates."""


PARTNERS: Final = ("key", "numbers", "longer")
"""What stands beside the worst value where there are two; all pairs would take hours."""
PAIR_S: Final = 0.2
"""What is looked at of a computation with a pair of values in a thread."""


class Case(NamedTuple):
    """Some work, and what it works with. So much of it is looked at in a thread.

    It is compiled when it is wanted: who lists the cases, as each process of the tests does, would compile for seconds.
    """

    name: str
    label: str
    compiled: Callable[[], Callable[[], Any]]
    thread_s: float = THREAD_S

    @property
    def work(self) -> Callable[[], Any]:
        """What to measure."""
        return self.compiled()


def cases(partners: tuple[str, ...] = PARTNERS) -> Iterator[Case]:
    """All of them."""
    for name in sorted(SERVED):
        yield from _calls_of(name, SERVED[name], partners)
    yield from _blocks()
    yield from _outputs()
    yield from _inner_texts()
    yield from _operators(partners)
    yield from _functions(partners)


def _calls_of(name: str, helper: Helper, partners: tuple[str, ...]) -> Iterator[Case]:
    """A helper with each number of arguments: all pairs of values, and each value at each further place."""
    most = helper.least + 1 if helper.most is None else helper.most
    for count in range(helper.least, most + 1):
        for given in _arguments(count, partners):
            yield _call(name, " ".join(given))
    if helper.most is None:
        for value in VALUES:
            yield _call(name, " ".join([value] * MANY))
    for key in ("key", "value") if helper.named is None else sorted(helper.named):
        for value in VALUES:
            yield _call(name, " ".join(["time"] * helper.least + [f"{key}={value}"]))
    if helper.named is None:
        for value in VALUES:
            yield _call(name, " ".join(f"k{at}={value}" for at in range(MANY)))


def _arguments(count: int, partners: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if count == 1:
        yield from ((value,) for value in VALUES)
        return
    if count == 2:
        yield from ((value, value) for value in VALUES)
        yield from _pairs(partners)
        return
    for value in VALUES:
        yield (value,) * count
        for other in ("place", "number"):
            for at in range(count):
                yield tuple(value if place == at else other for place in range(count))


def _pairs(partners: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for value, other in product(VALUES, partners):
        yield value, other
        yield other, value


def _call(name: str, arguments: str) -> Case:
    return _template(name, f"{{{{{name} {arguments}}}}}")


def _template(name: str, text: str) -> Case:
    def compiled() -> Callable[[], Any]:
        try:
            return _of_payload(compile_variable(text))
        except FormulaError:
            return _of_payload(compile_template(text).text)

    words = {*text.strip("{}").split()} & VALUES.keys()
    return Case(name, text[:100], compiled, PAIR_S if len(words) > 1 else THREAD_S)


def _of_payload(evaluate: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: evaluate(payload())


def _blocks() -> Iterator[Case]:
    for value in VALUES:
        for name in _BUILT_IN_BLOCKS:
            for inner in ("", "{{this}}", "{{@key}}"):
                yield _template(f"#{name}", f"{{{{#{name} {value}}}}}{inner}{{{{else}}}}b{{{{/{name}}}}}")
        yield _template("section", f"{{{{#{value}}}}}{{{{this}}}}{{{{/{value}}}}}")
        for name in sorted(CONDITIONS):
            for other in ("key", "longer", "numbers"):
                yield _template(f"#{name}", f"{{{{#{name} {value} {other}}}}}a{{{{/{name}}}}}")


def _outputs() -> Iterator[Case]:
    for value in VALUES:
        yield _template("output", f"a{{{{{value}}}}}")
        yield _template("raw output", f"a{{{{{{{value}}}}}}}")
        yield Case("json", value, partial(_json_of, f"{{{{{{{value}}}}}}}"))


def _json_of(text: str) -> Callable[[], Any]:
    return _of_payload(compile_template(text).json)


def _inner_texts() -> Iterator[Case]:
    for name, (label, text) in product(("template", "evalExpression"), TEXTS.items()):
        yield Case(name, label, partial(_inner_text, name, text))


def _inner_text(name: str, text: str) -> Callable[[], Any]:
    return partial(compile_variable(f"{{{{{name} text}}}}"), {"text": text})


def _operators(partners: tuple[str, ...]) -> Iterator[Case]:
    for name in sorted(OPERATORS):
        for one, other in _pairs(partners):
            yield _expression(name, f"{{{{{one}}}}} {name} {{{{{other}}}}}", PAIR_S)
        for one in VALUES:
            yield _expression(name, f" {name} ".join([f"{{{{{one}}}}}"] * VARIABLES_MAX))
    for name in SIGNS:
        for one in VALUES:
            yield _expression(name, f"{name}{{{{{one}}}}}")


def _functions(partners: tuple[str, ...]) -> Iterator[Case]:
    for name in FUNCTIONS:
        for one, other in product(VALUES, partners):
            yield _expression(name, f"{name}({{{{{one}}}}}, {{{{{other}}}}})", PAIR_S)
        for one in VALUES:
            yield _expression(name, f"{name}({', '.join([f'{{{{{one}}}}}'] * VARIABLES_MAX)})")


def _expression(name: str, text: str, thread_s: float = THREAD_S) -> Case:
    def compiled() -> Callable[[], Any]:
        return _of_payload(compile_expression(text, compile_variable))

    return Case(name, text[:100], compiled, thread_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--over", type=float, default=LIMIT_MS)
    given = parser.parse_args()
    found: list[tuple[Held, Case]] = []
    count = 0
    with measuring():
        for case in cases():
            if given.only in case.name:
                count += 1
                took = held(case.work, case.thread_s)
                if took.worst_ms > given.over:
                    found.append((took, case))
                    sys.stderr.write(
                        f"{took.loop_ms:8.1f} {took.stretch_ms:8.1f} {case.name} | {case.label}\n"
                    )
    sys.stdout.write(f"{count} inputs; milliseconds in the loop, longest stretch in a thread\n")
    for took, case in sorted(found, key=lambda each: -each[0].worst_ms):
        sys.stdout.write(f"{took.loop_ms:8.1f} {took.stretch_ms:8.1f} {case.name:20} {case.label}\n")


if __name__ == "__main__":
    main()
