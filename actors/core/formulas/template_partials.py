"""Partials that a template defines itself: `{{#*inline "name"}}`, `{{> name}}`, and the block `{{#> name}}`.

As in Handlebars, a partial is known in the whole block that defines it, and in all partials that are written there. Its
`this` is that of the place where it is written; `../` and the parameters of blocks are those of the place where it is
defined. Within the block of `{{#> name}}` the partial `@partial-block` is its content.

A partial that writes itself is bounded by its depth, and by the steps of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.core.formulas.errors import EvaluationError
from trunkline.actors.core.formulas.template_run import Evaluate, Scope, Write
from trunkline.actors.core.formulas.values import to_text

PARTIALS_DEEP_MAX: Final = 32
"""Partials that are written within each other. A tree of menus has three."""

BLOCK: Final = "@partial-block"


class Known(NamedTuple):
    """A partial that is known: how it is written, the scope that defined it, and the partial block of that place."""

    write: Write
    home: Scope
    block: Known | None = None


Inlines = list[tuple[Evaluate, Write]]
"""The names and the contents of the partials that a program defines."""


def with_inlines(inlines: Inlines, write: Write) -> Write:
    """The program with its partials, which are known in all of it."""
    return lambda scope: _within(scope, _defined(scope, inlines), lambda: write(scope))


def write_partial(
    name: Evaluate,
    context: Evaluate | None,
    named: Mapping[str, Evaluate],
    indent: str,
    block: tuple[Inlines, Write] | None,
) -> Write:
    """A statement that writes a partial; `block` is the content of one that is a block."""

    def write(scope: Scope) -> None:
        run = scope.run
        run.spend(1)
        partials: dict[str, Known] = run.partials
        if block is not None:
            inlines, content = block
            outer = partials.get(BLOCK)
            partials = {**_defined(scope, inlines), BLOCK: Known(content, scope, outer)}
        text = to_text(name(scope))
        known = partials.get(text)
        if known is None:
            if block is None:
                raise EvaluationError(f"There is no partial {text[:100]}.")
            known = partials[BLOCK]
            text = BLOCK
        if text == BLOCK:
            # Within its content, the partial block is that of the place where it stands.
            partials = {key: each for key, each in partials.items() if key != BLOCK}
            if known.block is not None:
                partials[BLOCK] = known.block
        this = scope.this if context is None else context(scope)
        if named:
            this = {
                **(this if isinstance(this, dict) else {}),
                **{key: each(scope) for key, each in named.items()},
            }
            run.spend(len(this))
        inner = known.home.enter(this)
        inner.frame = scope.frame
        if indent:
            _within(scope, partials, lambda: _indented(inner, known.write, indent))
        else:
            _within(scope, partials, lambda: known.write(inner))

    return write


def _defined(scope: Scope, inlines: Inlines) -> dict[str, Known]:
    """What is known with the partials that are defined here."""
    run = scope.run
    run.spend(1 + len(run.partials) + len(inlines))
    block = run.partials.get(BLOCK)
    return {**run.partials, **{to_text(name(scope)): Known(write, scope, block) for name, write in inlines}}


def _within(scope: Scope, partials: dict[str, Any], write: Callable[[], None]) -> None:
    run = scope.run
    outer = run.partials
    if run.partials_deep >= PARTIALS_DEEP_MAX:
        raise EvaluationError(f"Partials lie in each other, {PARTIALS_DEEP_MAX} deep, which is the limit.")
    run.partials = partials
    run.partials_deep += 1
    try:
        write()
    except RecursionError:
        raise EvaluationError("The partials and the blocks in them nest too deep.") from None
    finally:
        run.partials = outer
        run.partials_deep -= 1


def _indented(scope: Scope, write: Write, indent: str) -> None:
    """Write a partial that stands alone on an indented line: each of its lines is indented as well."""
    run = scope.run
    text = run.captured(lambda: write(scope))
    run.characters_left += len(text)
    lines = text.split("\n")
    run.spend(len(lines))
    last = lines.pop()
    run.write("".join(f"{indent}{line}\n" for line in lines) + (indent + last if last else ""))
