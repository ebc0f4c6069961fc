"""The tree of a template: what `template_syntax` reads and `templates` compiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Literal:
    """A text, a number, true, false, null or undefined. `source` is its name where it stands in place of a path."""

    value: Any
    source: str
    at: int


@dataclass(slots=True)
class Reference:
    """A path: `a.b`, `../a`, `this`, `@index`. `plain` is true for a single name that may also name a helper."""

    text: str
    keys: list[str]
    depth: int
    data: bool
    plain: bool
    scoped: bool
    at: int


@dataclass(slots=True)
class Call:
    """A name with arguments, or a name alone; also a subexpression."""

    name: Literal | Reference
    arguments: list[Literal | Reference | Call]
    named: dict[str, Literal | Reference | Call]
    at: int


@dataclass(slots=True)
class Strip:
    """Whether `~` stands at the opening and at the closing braces of a statement."""

    open: bool = False
    close: bool = False


@dataclass(slots=True)
class Content:
    """Text between statements: as it was written, and without the white space that is removed."""

    original: str
    value: str
    stripped_left: bool = False
    stripped_right: bool = False


@dataclass(slots=True)
class Comment:
    """A comment. It makes no output, but a line with nothing else is removed."""

    strip: Strip


@dataclass(slots=True)
class Output:
    """A statement that writes a value."""

    call: Call
    escaped: bool
    strip: Strip


@dataclass(slots=True)
class Partial:
    """A statement that writes a partial. `indent` stands before each of its lines; `name` may be computed."""

    name: Literal | Reference | Call
    call: Call
    strip: Strip
    indent: str = ""


@dataclass(slots=True)
class Block:
    """A block. `main` is None in an inverted one without an else; `chained` is one made by `else if`.

    `mark` is `*` for one that defines a partial, and `>` for one that writes a partial or, without it, itself.
    """

    call: Call
    main: Program | None
    other: Program | None
    open_strip: Strip
    other_strip: Strip
    close_strip: Strip
    mark: str = ""


@dataclass(slots=True)
class Program:
    """Statements in a row. `chained` says that the only statement is the block of an `else if`."""

    body: list[Content | Comment | Output | Partial | Block] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    chained: bool = False
