"""The white space around the statements of a template, removed by the rules of Handlebars.

`~` at the braces removes all white space on that side. Comments, partials, and the tags that open, close and divide a
block, vanish with their line where they stand alone on it; a tag that writes a value does not. The work is linear: no
pattern is searched for in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trunkline.actors.core.formulas.template_tree import (
    Block,
    Comment,
    Content,
    Output,
    Partial,
    Program,
    Strip,
)
from trunkline.actors.core.formulas.values import WHITE_SPACE


@dataclass(slots=True)
class _Edges:
    """What a statement asks of the text around it. `opening` and `closing`: its tag may stand alone on a line."""

    strip: Strip
    opening: bool = False
    closing: bool = False
    alone: bool = False


def remove_white_space(program: Program, root: bool = True) -> None:
    """Shorten the contents of a program and of all blocks in it."""
    body = program.body
    for position, statement in enumerate(body):
        edges = _edges(statement)
        if edges is None:
            continue
        free_before = _space_before(body, position, root)
        free_after = _space_after(body, position, root)
        if edges.strip.close:
            _cut_start(body, position + 1, everything=True)
        if edges.strip.open:
            _cut_end(body, position - 1, everything=True)
        if edges.alone and free_before and free_after:
            _cut_start(body, position + 1)
            if isinstance(statement, Partial):
                statement.indent = _indentation(body, position - 1)
            _cut_end(body, position - 1)
        if isinstance(statement, Block):
            if edges.opening and free_before:
                _cut_start(_first(statement).body, 0)
                _cut_end(body, position - 1)
            if edges.closing and free_after:
                last = statement.other or statement.main
                _cut_start(body, position + 1)
                _cut_last(last.body if last else [])


def _edges(statement: Any) -> _Edges | None:
    if isinstance(statement, Block):
        return _block_edges(statement)
    if isinstance(statement, Comment | Partial):
        return _Edges(statement.strip, alone=True)
    return _Edges(statement.strip) if isinstance(statement, Output) else None


def _indentation(body: list[Any], position: int) -> str:
    content = _content(body, position)
    text = content.value if content is not None else ""
    return text[len(text.rstrip(" \t")) :]


def _first(block: Block) -> Program:
    return block.main or block.other or Program()


def _block_edges(block: Block) -> _Edges:
    """Shorten what is inside of a block, and say what the block asks of the text outside."""
    for program in (block.main, block.other):
        if program is not None:
            remove_white_space(program, root=False)
    main = _first(block)
    other = block.other if block.main is not None else None
    first_other, last_other = other, other
    if other is not None and other.chained:
        first_other = _chained(other).main
        while last_other is not None and last_other.chained:
            last_other = _chained(last_other).main
    inner = main.body
    edges = _Edges(
        Strip(block.open_strip.open, block.close_strip.close),
        opening=_space_after(inner, -1, root=False),
        closing=_space_before(body := (first_other or main).body, len(body), root=False),
    )
    if block.open_strip.close:
        _cut_start(inner, 0, everything=True)
    if other is None or first_other is None or last_other is None:
        if block.close_strip.open:
            _cut_last(inner, everything=True)
        return edges
    if block.other_strip.open:
        _cut_last(inner, everything=True)
    if block.other_strip.close:
        _cut_start(first_other.body, 0, everything=True)
    if block.close_strip.open:
        _cut_last(last_other.body, everything=True)
    if _space_before(inner, len(inner), root=False) and _space_after(first_other.body, -1, root=False):
        _cut_last(inner)
        _cut_start(first_other.body, 0)
    return edges


def _chained(program: Program) -> Block:
    statement = program.body[-1]
    assert isinstance(statement, Block)
    return statement


def _space_before(body: list[Any], position: int, root: bool) -> bool:
    """Whether only white space stands between the statement and the start of its line, as it was written."""
    if position == 0:
        return root
    before = body[position - 1]
    if not isinstance(before, Content):
        return False
    rest = before.original.rstrip(WHITE_SPACE)
    return "\n" in before.original[len(rest) :] or (not rest and position == 1 and root)


def _space_after(body: list[Any], position: int, root: bool) -> bool:
    """Whether only white space stands between the statement and the end of its line, as it was written."""
    if position + 1 == len(body):
        return root
    after = body[position + 1]
    if not isinstance(after, Content):
        return False
    rest = after.original.lstrip(WHITE_SPACE)
    start = after.original[: len(after.original) - len(rest)]
    return "\n" in start or (not rest and position + 2 == len(body) and root)


def _cut_start(body: list[Any], position: int, everything: bool = False) -> None:
    """Remove the rest of the line, or all white space, from the start of a content."""
    content = _content(body, position)
    if content is None or (content.stripped_right and not everything):
        return
    before = content.value
    if everything:
        content.value = before.lstrip(WHITE_SPACE)
    else:
        content.value = before.lstrip(" \t").removeprefix("\r").removeprefix("\n")
    content.stripped_right = content.value != before


def _cut_end(body: list[Any], position: int, everything: bool = False) -> None:
    """Remove the indentation, or all white space, from the end of a content."""
    content = _content(body, position)
    if content is None or (content.stripped_left and not everything):
        return
    before = content.value
    content.value = before.rstrip(WHITE_SPACE if everything else " \t")
    content.stripped_left = content.value != before


def _cut_last(body: list[Any], everything: bool = False) -> None:
    _cut_end(body, len(body) - 1, everything)


def _content(body: list[Any], position: int) -> Content | None:
    found = body[position] if 0 <= position < len(body) else None
    return found if isinstance(found, Content) else None
