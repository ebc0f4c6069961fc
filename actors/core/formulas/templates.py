"""Templates: Handlebars compiled to closures, once for each text.

`{{path}}` writes a value with its HTML characters escaped, `{{{path}}}` as it is; the helpers stand in
`template_functions`, the blocks in `template_blocks`. A template makes a text, JSON, or a value: a template that is one
`{{path}}` keeps the type.

One evaluation is bounded: by the length of what it writes, and by its work, which is charged (`price.py`). A statement,
an item of a loop and a call of a helper are a step; what a helper does with items and characters it charges itself.

The file is long because the compiler is one class, whose methods call each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn

import msgspec

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.expressions import compile_expression
from trunkline.actors.core.formulas.json_values import json_value
from trunkline.actors.core.formulas.long_texts import escaped, joined
from trunkline.actors.core.formulas.paths import Path
from trunkline.actors.core.formulas.price import CHARACTERS_A_STEP, computed
from trunkline.actors.core.formulas.template_blocks import (
    write_each,
    write_if,
    write_on_condition,
    write_section,
    write_with,
)
from trunkline.actors.core.formulas.template_functions import CONDITIONS, HELPERS, NOT_SERVED, Dialect, Helper
from trunkline.actors.core.formulas.template_partials import Inlines, with_inlines, write_partial
from trunkline.actors.core.formulas.template_run import (
    Evaluate,
    Run,
    Scope,
    Write,
    is_nothing,
    too_long,
    variable_of,
)
from trunkline.actors.core.formulas.template_syntax import fail, parse
from trunkline.actors.core.formulas.template_tree import (
    Block,
    Call,
    Comment,
    Content,
    Literal,
    Output,
    Partial,
    Program,
    Reference,
)
from trunkline.actors.core.formulas.template_whitespace import remove_white_space
from trunkline.actors.core.formulas.values import TEXT_CHARS_MAX, UNDEFINED, to_text

INNER_TEXTS_KEPT: Final = 64
"""Compiled texts of the helpers `template` and `evalExpression` that are kept for the next evaluation, of each."""

INNER_TEXT_CHARS_MAX: Final = 32_767
"""Characters of such a text."""

PLAIN_PARTS_MAX: Final = 1_000
"""Texts and paths of a template without helpers and blocks; one of more is evaluated as those with helpers are."""
_BUILT_IN_BLOCKS: Final = ("if", "unless", "each", "with")


class Template:
    """A compiled template; `bare` is None unless it is one path. `now_ms` is what helpers see, by default the clock.

    Two ways past the scopes of an evaluation: `path` is the value of a template that is one path of the payload, and
    `plain` the text of one that has nothing but texts and such paths, as most have.
    """

    __slots__ = ("bare", "path", "plain", "text_length_max", "write")

    def __init__(
        self,
        write: Write,
        bare: Evaluate | None,
        text_length_max: int,
        path: Callable[[Any], Any] | None,
        plain: Callable[[Any], str] | None,
    ) -> None:
        self.write = write
        self.bare = bare
        self.text_length_max = text_length_max
        self.path = path
        self.plain = plain

    def text(self, payload: Any, now_ms: int | None = None) -> str:
        """Return the text for a payload. Raises `EvaluationError` over a bound."""
        text: str = computed(self._text, payload, now_ms)
        return text

    def value(self, payload: Any, now_ms: int | None = None) -> Any:
        """Return the value of a template that is one path, UNDEFINED if there is none; the text of all others."""
        if self.path is not None:
            return self.path(payload)
        if self.bare is None:
            return self.text(payload, now_ms)
        return computed(self._bare, payload, now_ms)

    def json(self, payload: Any, now_ms: int | None = None) -> Any:
        """Return the value of the text as JSON. Raises `EvaluationError` if it is none."""
        try:
            return computed(self._json, payload, now_ms)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
            raise EvaluationError(f"The text of the template is not valid JSON: {error}.") from None

    def text_of(self, scope: Scope) -> str:
        """Return the text for a new scope, within the bounds of its run."""
        self.write(scope)
        return joined(scope.run.pieces)

    def _text(self, payload: Any, now_ms: int | None) -> str:
        if self.plain is not None:
            return self.plain(payload)
        return self.text_of(Scope(Run(payload, self.text_length_max, now_ms), payload, None))

    def _bare(self, payload: Any, now_ms: int | None) -> Any:
        assert self.bare is not None
        return self.bare(Scope(Run(payload, self.text_length_max, now_ms), payload, None))

    def _json(self, payload: Any, now_ms: int | None) -> Any:
        return json_value(self._text(payload, now_ms))


def compile_template(
    text: str,
    text_length_max: int = TEXT_CHARS_MAX,
    dialect: Dialect | None = None,
    *,
    escapes: bool = True,
) -> Template:
    """Compile a template. Raises `FormulaError` with line and column.

    Without `escapes` also `{{path}}` is written as it is: for texts that are shown as texts, not as HTML.
    """
    program = parse(text)
    remove_white_space(program)
    compiler = _Compiler(text, dialect, escapes=escapes)
    bare: Evaluate | None = None
    path: Callable[[Any], Any] | None = None
    if len(program.body) == 1 and isinstance(only := program.body[0], Output):
        bare, path = compiler.bare(only.call), compiler.path(only.call)
    write = compiler.program(program)
    return Template(write, bare, text_length_max, path, _plain(program, compiler, text_length_max))


def _plain(program: Program, compiler: _Compiler, text_length_max: int) -> Callable[[Any], str] | None:
    """A function that makes the text; None if there is more than texts and paths of the payload."""
    parts: list[tuple[str, Callable[[Any], Any] | None, bool]] = []
    for each in program.body[: PLAIN_PARTS_MAX + 1]:
        if isinstance(each, Content):
            parts.append((each.value, None, False))
        elif isinstance(each, Output) and (get := compiler.path(each.call)) is not None:
            parts.append(("", get, each.escaped and compiler.escapes))
        elif not isinstance(each, Comment):
            return None
    if len(parts) > PLAIN_PARTS_MAX:
        return None

    def text_of(payload: Any) -> str:
        pieces: list[str] = []
        left = text_length_max
        for piece, get, is_escaped in parts:
            if get is not None:
                value = get(payload)
                if is_nothing(value):
                    continue
                piece = to_text(value)
                if is_escaped:
                    piece = escaped(piece)
            left -= len(piece)
            if left < 0:
                raise too_long()
            pieces.append(piece)
        return joined(pieces)

    return text_of


def compile_variable(text: str) -> Callable[[Any], Any]:
    """Compile `{{...}}` to a function of the payload that keeps the type of the value: of a path or of a helper.

    This is what braces in an expression mean. Raises `FormulaError` for a block, or for text around the braces.
    """
    call = _only_call(text)
    compiler = _Compiler(text)
    get = compiler.path(call)
    if get is not None:
        return get
    evaluate = compiler.value(call)
    return lambda payload: evaluate(Scope(Run(payload, TEXT_CHARS_MAX, None), payload, None))


def _only_call(text: str) -> Call:
    body = parse(text).body
    if len(body) != 1 or not isinstance(only := body[0], Output):
        raise FormulaError(f"{text} is not one path or one helper in braces.")
    return only.call


class _Compiler:
    """Makes closures of the tree of one template."""

    def __init__(self, text: str, dialect: Dialect | None = None, *, escapes: bool = True) -> None:
        self.text = text
        self.escapes = escapes
        self.helpers = SERVED if dialect is None else {**SERVED, **dialect.helpers}
        self.blocks = {} if dialect is None else dialect.blocks
        # The names of block parameters in reach, the innermost block first.
        self.parameters: list[list[str]] = []

    def program(self, program: Program | None) -> Write:
        inlines = self._inlines(program)
        write = self._body(program)
        return with_inlines(inlines, write) if inlines else write

    def _inlines(self, program: Program | None) -> Inlines:
        """The partials that a program defines, wherever they stand in it."""
        return [
            (self._value(each.call.arguments[0]), self.program(each.main))
            for each in (program.body if program is not None else ())
            if isinstance(each, Block) and each.mark == "*"
        ]

    def _partial(self, name: Evaluate, call: Call, indent: str, block: Program | None) -> Write:
        context = self._value(call.arguments[0]) if call.arguments else None
        named = {key: self._value(each) for key, each in call.named.items()}
        content = None if block is None else (self._inlines(block), self._body(block))
        return write_partial(name, context, named, indent, content)

    def _name_of(self, node: Literal | Reference | Call) -> Evaluate:
        """The name of a partial: as it is written, or what a helper gives."""
        if isinstance(node, Call):
            return self._value(node)
        text = _text_of(node)
        return lambda _: text

    def _body(self, program: Program | None) -> Write:
        writers = [self._statement(each) for each in program.body] if program is not None else []
        writes = tuple(each for each in writers if each is not None)
        if len(writes) == 1:
            return writes[0]

        def write(scope: Scope) -> None:
            scope.run.spend(len(writes))
            for each in writes:
                each(scope)

        return write

    def path(self, call: Call) -> Callable[[Any], Any] | None:
        """The value of a statement that is one path of the payload, as a function of it; None for all else."""
        name = call.name
        if not isinstance(name, Reference) or name.depth or name.data or self.bare(call) is None:
            return None
        return Path(name.text, name.keys).get

    def bare(self, call: Call) -> Evaluate | None:
        """The value of a statement that is one path; None for a helper."""
        if call.arguments or call.named or self._helper(call) is not None:
            return None
        return self._value(call.name, field=True)

    def value(self, call: Call) -> Evaluate:
        """The value of a statement: of a path or of a helper."""
        return self.bare(call) or self._helper_value(call)

    def _helper_value(self, call: Call) -> Evaluate:
        helper = self._helper(call)
        if helper is None:
            self._unknown(call)
        return self._call(call, helper)

    def _statement(self, statement: Any) -> Write | None:
        if isinstance(statement, Content):
            return _content(statement.value) if statement.value else None
        if isinstance(statement, Output):
            return self._output(statement)
        if isinstance(statement, Partial):
            return self._partial(self._name_of(statement.name), statement.call, statement.indent, None)
        if isinstance(statement, Block) and statement.mark:
            call, main = statement.call, statement.main or Program()
            return None if statement.mark == "*" else self._partial(self._name_of(call.name), call, "", main)
        return self._block(statement) if isinstance(statement, Block) else None

    def _output(self, output: Output) -> Write:
        helper = self._helper(output.call)
        evaluate = self.value(output.call)
        if not (output.escaped and self.escapes) or (helper is not None and helper.markup):

            def write_raw(scope: Scope) -> None:
                value = evaluate(scope)
                if not is_nothing(value):
                    scope.run.write(to_text(value))

            return write_raw

        def write(scope: Scope) -> None:
            value = evaluate(scope)
            if not is_nothing(value):
                scope.run.write(escaped(to_text(value)))

        return write

    def _block(self, block: Block) -> Write:
        name = _text_of(block.call.name)
        parameters = block.main.parameters if block.main is not None else []
        if parameters and name not in ("each", "with"):
            fail(self.text, block.call.at, f"the block {name} has no parameters; each and with have.")
        self.parameters.insert(0, parameters)
        main = self.program(block.main)
        self.parameters.pop(0)
        other = self.program(block.other)
        arguments = block.call.arguments
        if name in _BUILT_IN_BLOCKS or name in self.blocks:
            if len(arguments) != 1:
                fail(self.text, block.call.at, f"the block {name} takes one argument, not {len(arguments)}.")
            subject = self._value(arguments[0])
            if name in self.blocks:
                return self.blocks[name](subject, main)
            if name == "each":
                return write_each(subject, main, other, bool(parameters))
            if name == "with":
                return write_with(subject, main, other, bool(parameters))
            zero = block.call.named.get("includeZero")
            evaluate_zero = self._value(zero) if zero is not None else None
            if name == "unless":
                main, other = other, main
            return write_if(subject, evaluate_zero, main, other)
        if arguments or block.call.named:
            condition = self._helper_value(block.call)
            if name not in CONDITIONS:
                fail(self.text, block.call.at, f"the helper {name} cannot open a block.")
            return write_on_condition(condition, main, other)
        return write_section(self._value(block.call.name, field=True), main, other)

    def _helper(self, call: Call) -> Helper | None:
        """The helper that a call means. A name alone is a field, unless the helper needs no argument."""
        if not isinstance(call.name, Reference) or not call.name.plain:
            return None
        name = call.name.keys[0]
        if not (call.arguments or call.named) and self._parameter(name) is not None:
            return None
        if name in NOT_SERVED and (call.arguments or call.named):
            fail(self.text, call.at, f"the helper {name} is not served yet.")
        helper = self.helpers.get(name)
        if helper is None or call.arguments or call.named or helper.least == 0:
            return helper
        return None

    def _unknown(self, call: Call) -> NoReturn:
        name = _text_of(call.name)
        if name in _BUILT_IN_BLOCKS:
            fail(self.text, call.at, f"{name} is a block: write {{{{#{name} ...}}}}.")
        fail(self.text, call.at, f"there is no helper {name}.")

    def _value(self, node: Literal | Reference | Call, field: bool = False) -> Evaluate:
        """The value of an argument, or with `field` of a name in place of a statement."""
        if isinstance(node, Call):
            return self._helper_value(node)
        if isinstance(node, Reference):
            return self._reference(node)
        if not field:
            value = node.value
            return lambda _: value
        get = Path(node.source, [node.source]).get
        return lambda scope: get(scope.this)

    def _parameter(self, name: str) -> tuple[int, int] | None:
        """The block, counted from the innermost, and the position of a block parameter."""
        level = 0
        for names in self.parameters:
            if name in names:
                return level, names.index(name)
            level += bool(names)
        return None

    def _reference(self, reference: Reference) -> Evaluate:
        keys, depth = reference.keys, reference.depth
        if reference.data:
            return variable_of(keys[0] if keys else "", Path(reference.text, keys[1:]).get, depth)
        place = None if reference.scoped or not keys else self._parameter(keys[0])
        if place is not None:
            level, position = place
            rest = Path(reference.text, keys[1:]).get

            def parameter(scope: Scope) -> Any:
                parameters = scope.parameters
                for _ in range(level):
                    parameters = parameters[1]
                return rest(parameters[0][position] if position < 2 else UNDEFINED)

            return parameter
        get = Path(reference.text, keys).get
        if not depth:
            return lambda scope: get(scope.this)

        def outer(scope: Scope) -> Any:
            found: Scope | None = scope
            for _ in range(depth):
                found = found.above if found is not None else None
            return UNDEFINED if found is None else get(found.this)

        return outer

    def _call(self, call: Call, helper: Helper) -> Evaluate:
        name = _text_of(call.name)
        count = len(call.arguments)
        if count < helper.least:
            fail(
                self.text, call.at, f"the helper {name} takes at least {helper.least} arguments, not {count}."
            )
        most = count if helper.most is None else helper.most
        arguments = tuple(self._value(each) for each in call.arguments[:most])
        named = {
            key: self._value(each)
            for key, each in call.named.items()
            if helper.named is None or key in helper.named
        }
        function, whole = helper.function, helper.whole

        def evaluate(scope: Scope) -> Any:
            run = scope.run
            values = [each(scope) for each in arguments]
            steps = 1
            for position, value in enumerate(values):
                if isinstance(value, list) and not whole:
                    value = values[position] = to_text(value)
                if isinstance(value, str):
                    steps += len(value) // CHARACTERS_A_STEP
            run.spend(steps)
            if helper.of_run:
                values.insert(0, scope)
            if named:
                return function(*values, **{key: each(scope) for key, each in named.items()})
            return function(*values)

        return evaluate


def _text_of(name: Literal | Reference) -> str:
    return name.text if isinstance(name, Reference) else name.source


def _content(text: str) -> Write:
    return lambda scope: scope.run.write(text)


_kept_template: Final = lru_cache(maxsize=INNER_TEXTS_KEPT)(compile_template)


@lru_cache(maxsize=INNER_TEXTS_KEPT)
def _kept_expression(text: str) -> Evaluate:
    return compile_expression(text, _scoped_variable)


def _scoped_variable(text: str) -> Evaluate:
    """Braces in an expression that is evaluated with a scope in place of the payload, within the bounds of its run."""
    evaluate = _Compiler(text).value(_only_call(text))

    def variable(scope: Scope) -> Any:
        scope.run.spend(1)
        return evaluate(scope)

    return variable


def _within(scope: Scope, helper: str, context: Any, evaluate: Evaluate) -> Any:
    """Evaluate a text of the payload, within the bounds of the run. It may not name such a helper again."""
    run = scope.run
    if run.within:
        raise EvaluationError(f"The helper {helper} is called within a text that a helper evaluates.")
    inner = Run(run.root if context is UNDEFINED else context, run.characters_left, run.clock())
    inner.budget = run.budget
    inner.within = True
    return evaluate(Scope(inner, inner.root, None))


def _inner_text(scope: Scope, text: Any) -> str:
    """The text to compile. Each character is a step, whether it was kept or not."""
    source = to_text(text)
    if len(source) > INNER_TEXT_CHARS_MAX:
        raise EvaluationError(
            f"A text that a helper evaluates has at most {INNER_TEXT_CHARS_MAX} characters; this one has {len(source)}."
        )
    scope.run.spend(len(source))
    return source


def _template(scope: Scope, text: Any, context: Any = UNDEFINED) -> Any:
    source = "" if text is None or text is UNDEFINED else _inner_text(scope, text)
    try:
        template = _kept_template(source)
    except FormulaError as error:
        raise EvaluationError(f"The text for the helper template is not a valid template: {error}") from None
    return _within(scope, "template", context, template.text_of)


def _eval_expression(scope: Scope, text: Any, context: Any = UNDEFINED) -> Any:
    source = _inner_text(scope, text)
    try:
        expression = _kept_expression(source)
    except FormulaError as error:
        raise EvaluationError(
            f"The text for the helper evalExpression is not a valid expression: {error}"
        ) from None
    return _within(scope, "evalExpression", context, expression)


SERVED: Final = {
    **HELPERS,
    "evalExpression": Helper(_eval_expression, 1, 2, of_run=True, whole=True),
    "template": Helper(_template, 1, 2, of_run=True, whole=True),
}
