"""The look of the console as its style sheets define it: the variables of base.css, and every declaration that is made.

Owns the tables of docs/reference/look.md. Does not own what is allowed: `test_look.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.rules.markdown import code, table
from trunkline.http.site.site import CONSOLE

STYLE: Final = CONSOLE / "style"
_VARIABLE: Final = re.compile(r"^  (--[\w-]+): (.*?);(?: /\* (.*) \*/)?$", re.MULTILINE)
_ROOT: Final = re.compile(r"^:root(\[data-theme=\"dark\"\])? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")


class Variable(NamedTuple):
    """A variable with what it is for; `dark` is empty if the value is the same in both themes."""

    name: str
    light: str
    dark: str
    use: str


class Declaration(NamedTuple):
    """A property that a rule sets, in a file of `STYLE`."""

    file: str
    rule: str
    property: str
    value: str


def variables() -> list[Variable]:
    """All variables, in the order of base.css. One without a comment has the use of the one before it."""
    light: dict[str, tuple[str, str]] = {}
    dark: dict[str, str] = {}
    for theme, body in _ROOT.findall((STYLE / "base.css").read_text(encoding="utf-8")):
        for name, value, use in _VARIABLE.findall(body):
            if theme:
                dark[name] = value
            else:
                light[name] = (value, use)
    return [Variable(name, value, dark.get(name, ""), use) for name, (value, use) in light.items()]


def declarations() -> Iterator[Declaration]:
    """Every property that is set outside of the variables of base.css."""
    for file in sorted(STYLE.glob("*.css")):
        text = _COMMENT.sub("", _ROOT.sub("", file.read_text(encoding="utf-8")))
        for rule, body in _RULE.findall(text):
            for each in filter(str.strip, body.split(";")):
                name, _, value = each.partition(":")
                yield Declaration(file.name, rule.strip(), name.strip(), value.strip())


def sizes() -> str:
    """The sizes, spaces, radii and edges: the same in both themes."""
    rows = ((code(each.name), code(each.light), each.use) for each in variables() if not each.dark)
    return table(("Variable", "Value", "For"), rows)


def colours() -> str:
    """The colours and shadows, light and dark."""
    rows = (
        (code(each.name), code(each.light), code(each.dark), each.use) for each in variables() if each.dark
    )
    return table(("Variable", "Light", "Dark", "For"), rows)
