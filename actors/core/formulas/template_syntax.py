"""The syntax of templates: from the text of a template to a tree of statements.

The language is Handlebars 4.7 without raw blocks and without decorators other than `inline`, which are refused by name.
Partials are those that a template defines itself. Blocks and subexpressions nest at most `NESTING_MAX` levels, so the
recursion over the tree is bounded, here and wherever it is compiled. The white space around statements is removed by
`template_whitespace`.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from trunkline.actors.core.formulas.errors import FormulaError
from trunkline.actors.core.formulas.price import spend
from trunkline.actors.core.formulas.template_opened import Opened, joined
from trunkline.actors.core.formulas.template_tree import (
    Call,
    Comment,
    Content,
    Literal,
    Output,
    Partial,
    Program,
    Reference,
    Strip,
)
from trunkline.actors.core.formulas.values import UNDEFINED, WHITE_SPACE, to_text, whole_as_int

NESTING_MAX: Final = 64
"""Levels of blocks (each `else if` is one) and, within a statement, of parentheses."""

STATEMENT_STEPS: Final = 10
"""What a statement costs to read and to compile, with a path. Text between statements costs next to nothing."""
PART_STEPS: Final = 2
"""The same of a part of a path, and of an argument."""

_TOKEN: Final = re.compile(
    rf"""
    (?P<space>[{WHITE_SPACE}]+)
    | (?P<text>"(?:\\"|[^"])*"|'(?:\\'|[^'])*')
    | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?=[~}}{WHITE_SPACE})\]]))
    | (?P<word>(?:true|false|null|undefined)(?=[~}}{WHITE_SPACE})\]]))
    | (?P<as>as[{WHITE_SPACE}]+\|)
    | (?P<bracketed>\[(?:\\\]|[^\]])*\])
    | (?P<up>\.\.)
    | (?P<here>\.(?=[=~}}{WHITE_SPACE}/.)\]|]))
    | (?P<mark>[()=@./|])
    | (?P<name>[^{WHITE_SPACE}!"#%-,./;->@\[-^`{{-~]+(?=[=~}}{WHITE_SPACE}/.)\]|]))
    """,
    re.VERBOSE,
)
_ELSE: Final = re.compile(rf"[{WHITE_SPACE}]*else(?=[{WHITE_SPACE}~}}])[{WHITE_SPACE}]*")
_BRACES: Final = re.compile(r"\}\}")
_COMMENT_END: Final = re.compile(r"--~?\}\}")
_WORDS: Final = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}


def parse(text: str) -> Program:
    """Return the tree of a template. Raises `FormulaError` with line and column.

    The work at hand is charged for what it takes to compile it, too.
    """
    return _Parser(text).parse()


def fail(text: str, at: int, problem: str) -> NoReturn:
    """Raise `FormulaError` for a place in a template."""
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    raise FormulaError(f"Line {line}, column {column}: {problem}")


class _Parser:
    """Reads a template from left to right; blocks that are open stand on a list."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nesting = 0
        self.root = Program()
        self.opened: list[Opened] = []

    def parse(self) -> Program:
        spend(PART_STEPS)
        text = self.text
        while self.at < len(text):
            found = text.find("{{", self.at)
            if found < 0:
                self._content(text[self.at :])
                break
            before = text[self.at : found]
            if before.endswith("\\\\"):
                self._content(before[:-1])
            elif before.endswith("\\"):
                self._content(before[:-1])
                self._escaped_braces(found)
                continue
            else:
                self._content(before)
            self.at = found
            self._statement()
        if self.opened:
            call = self.opened[-1].call
            self._fail(call.at, f"the block {_name(call)} is not closed.")
        return self.root

    def _fail(self, at: int, problem: str) -> NoReturn:
        fail(self.text, at, problem)

    def _program(self) -> Program:
        return self.opened[-1].programs[-1] if self.opened else self.root

    def _content(self, text: str) -> None:
        if text:
            self._program().body.append(Content(text, text))

    def _escaped_braces(self, start: int) -> None:
        """Text from braces behind a backslash up to the next braces, or up to the backslash before them."""
        end = self.text.find("{{", start + 2)
        if end < 0:
            end = len(self.text)
        else:
            for _ in range(2):
                if end > start + 2 and self.text[end - 1] == "\\":
                    end -= 1
        self._content(self.text[start:end])
        self.at = end

    def _statement(self) -> None:
        """Read one statement from its opening to its closing braces."""
        spend(STATEMENT_STEPS)
        text, start = self.text, self.at
        if text.startswith("{{{{", start):
            self._fail(start, "raw blocks are not served in a template.")
        self.at = start + 2
        strip = Strip(open=self._take("~"))
        if self._take("!"):
            self._comment(start, strip)
        elif text.find("}}", start) < 0:
            self._fail(start, "the braces are not closed.")
        elif self._take("#"):
            mark = "*" if self._take("*") else ">" if self._take(">") else ""
            self._open_block(strip, inverted=False, mark=mark)
        elif self._take("/"):
            self._close_block(start, strip)
        elif self._take("^"):
            self._skip_space()
            if text.startswith(("}}", "~}}"), self.at):
                self._else(start, strip)
            else:
                self._open_block(strip, inverted=True)
        elif (found := _ELSE.match(text, self.at)) is not None:
            self.at = found.end()
            self._else(start, strip)
        elif self._take(">"):
            self._partial(strip)
        elif self._take("*"):
            self._fail(start, "the only decorator is the block {{#*inline ...}}.")
        else:
            raw = self._take("{")
            escaped = not (raw or self._take("&"))
            call = self._call()
            strip.close = self._closing("}" if raw else "")
            self._program().body.append(Output(call, escaped, strip))

    def _take(self, mark: str) -> bool:
        taken = self.text.startswith(mark, self.at)
        if taken:
            self.at += len(mark)
        return taken

    def _skip_space(self) -> None:
        text = self.text
        while self.at < len(text) and text[self.at] in WHITE_SPACE:
            self.at += 1

    def _closing(self, brace: str) -> bool:
        """Read the closing braces; return whether `~` stands before them."""
        self._skip_space()
        start = self.at
        if brace and not self._take(brace):
            self._fail(start, "expected }}}.")
        strip = self._take("~")
        if not self._take("}}"):
            self._fail(start, f"expected {brace}}}}}.")
        return strip

    def _comment(self, start: int, strip: Strip) -> None:
        dashes = self.text.startswith("--", self.at)
        found = (_COMMENT_END if dashes else _BRACES).search(self.text, self.at)
        if found is None:
            self._fail(start, "the comment is not closed.")
        strip.close = self.text[found.end() - 3] == "~"
        self._program().body.append(Comment(strip))
        self.at = found.end()

    def _partial(self, strip: Strip) -> None:
        """A partial: its name, which may be computed, its context, and named values."""
        self._skip_space()
        start = self.at
        name = self._argument(0)
        place = name.name if isinstance(name, Call) else name
        call = self._arguments(Call(place, [], {}, start), 0)
        if len(call.arguments) > 1:
            self._fail(start, "a partial takes one context at most.")
        strip.close = self._closing("")
        self._program().body.append(Partial(name, call, strip))

    def _open_block(self, strip: Strip, inverted: bool, mark: str = "") -> None:
        call, parameters = self._block_head()
        if mark == "*" and (_name(call) != "inline" or len(call.arguments) != 1 or parameters):
            self._fail(call.at, 'the only decorator is {{#*inline "name"}}.')
        if mark == ">" and (len(call.arguments) > 1 or parameters):
            self._fail(call.at, "a partial takes one context at most, and no block parameters.")
        strip.close = self._closing("")
        program = Program(parameters=parameters)
        self.opened.append(Opened(call, strip, inverted, [], [program], mark))
        self._nest(call.at)

    def _nest(self, at: int) -> None:
        self.nesting += 1
        if self.nesting > NESTING_MAX:
            self._fail(at, f"blocks nest deeper than {NESTING_MAX} levels.")

    def _block_head(self) -> tuple[Call, list[str]]:
        call = self._call()
        parameters: list[str] = []
        found = _TOKEN.match(self.text, self.at)
        if found is not None and found.lastgroup == "as":
            self.at = found.end()
            while True:
                self._skip_space()
                start = self.at
                if self._take("|"):
                    break
                parameters.append(self._key("the name of a block parameter"))
            if not parameters:
                self._fail(start, "expected the name of a block parameter.")
        return call, parameters

    def _else(self, start: int, strip: Strip) -> None:
        """An else alone, or `else if ...`, which opens a block within the else of the block before it."""
        if not self.opened:
            self._fail(start, "an else stands outside of a block.")
        block = self.opened[-1]
        if block.links and block.links[-1][0] is None:
            self._fail(start, f"the block {_name(block.call)} has an else already.")
        if block.mark:
            self._fail(start, f"the block {_name(block.call)} has no else.")
        if self.text.startswith(("}}", "~}}"), self.at):
            strip.close = self._closing("")
            block.links.append((None, strip))
            block.programs.append(Program())
            return
        if block.inverted:
            self._fail(start, "an inverted block takes an else without a condition only.")
        call, parameters = self._block_head()
        strip.close = self._closing("")
        self._nest(call.at)
        block.links.append((call, strip))
        block.programs.append(Program(parameters=parameters))

    def _close_block(self, start: int, strip: Strip) -> None:
        self._skip_space()
        name = self._simple()
        strip.close = self._closing("")
        written = _written(name)
        if not self.opened:
            self._fail(start, f"{written} is closed but was not opened.")
        block = self.opened.pop()
        if written != _name(block.call):
            self._fail(start, f"the block {_name(block.call)} is closed by {written}.")
        self.nesting -= 1 + sum(call is not None for call, _ in block.links)
        self._program().body.append(joined(block, strip))

    def _call(self, level: int = 0) -> Call:
        """A name, its arguments and its named arguments. `level` counts the parentheses around it."""
        self._skip_space()
        name = self._simple()
        return self._arguments(Call(name, [], {}, name.at), level)

    def _arguments(self, call: Call, level: int) -> Call:
        while True:
            self._skip_space()
            found = _TOKEN.match(self.text, self.at)
            if found is None or found.lastgroup == "as" or found[0] in ("=", ")", "|"):
                return call
            spend(PART_STEPS)
            start = self.at
            key = self._argument_name()
            if key is not None:
                call.named[key] = self._argument(level)
            elif call.named:
                self._fail(start, "an argument without a name stands behind one with a name.")
            else:
                call.arguments.append(self._argument(level))

    def _argument_name(self) -> str | None:
        """The name before an equals sign, or None, with nothing read, where there is none."""
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup not in ("name", "bracketed"):
            return None
        start = self.at
        key = self._key("a name")
        self._skip_space()
        if self._take("="):
            self._skip_space()
            return key
        self.at = start
        return None

    def _argument(self, level: int) -> Literal | Reference | Call:
        start = self.at
        if not self._take("("):
            return self._simple()
        if level == NESTING_MAX:
            self._fail(start, f"parentheses nest deeper than {NESTING_MAX} levels.")
        call = self._call(level + 1)
        self._skip_space()
        if not self._take(")"):
            self._fail(self.at, "expected a closing parenthesis or an argument.")
        return call

    def _simple(self) -> Literal | Reference:
        """A path or a literal."""
        start = self.at
        found = _TOKEN.match(self.text, start)
        kind = found.lastgroup if found is not None else None
        if found is None or kind not in ("text", "number", "word"):
            return self._reference(start)
        self.at = found.end()
        written = found[0]
        if kind == "text":
            value = written[1:-1].replace("\\" + written[0], written[0])
            return Literal(value, value, start)
        if kind == "word":
            return Literal(_WORDS[written], written, start)
        number = whole_as_int(float(written))
        return Literal(number, to_text(number), start)

    def _reference(self, start: int) -> Reference:
        data = self._take("@")
        text = "@" if data else ""
        keys: list[str] = []
        depth = 0
        scoped = False
        while True:
            spend(PART_STEPS)
            part_at = self.at
            found = _TOKEN.match(self.text, part_at)
            kind = found.lastgroup if found is not None else None
            part = self._key("a name or a value", more=("up", "here"))
            text += part
            if kind != "bracketed" and part in ("..", ".", "this"):
                if keys:
                    self._fail(part_at, f"{part} stands in the middle of a path.")
                depth += part == ".."
                scoped = True
            else:
                keys.append(part)
            if self.text[self.at : self.at + 1] not in (".", "/"):
                break
            text += self.text[self.at]
            self.at += 1
        plain = len(keys) == 1 and not (data or scoped)
        return Reference(text, keys, depth, data, plain, scoped, start)

    def _key(self, expected: str, more: tuple[str, ...] = ()) -> str:
        """Read a name, or a name in brackets, which may hold any character."""
        found = _TOKEN.match(self.text, self.at)
        # A word such as true and a number are names where no literal can stand: `a.true`, `list.0`.
        if found is None or found.lastgroup not in ("name", "bracketed", "word", "number", *more):
            self._fail(self.at, f"expected {expected}.")
        self.at = found.end()
        if found.lastgroup == "bracketed":
            return re.sub(r"\\([\\\]])", r"\1", found[0])[1:-1]
        return found[0]


def _written(name: Literal | Reference) -> str:
    return name.text if isinstance(name, Reference) else name.source


def _name(call: Call) -> str:
    return _written(call.name)
