"""Blocks of templates while they are read, and how their parts become one block."""

from __future__ import annotations

from dataclasses import dataclass

from trunkline.actors.core.formulas.template_tree import Block, Call, Program, Strip


@dataclass(slots=True)
class Opened:
    """A block whose end was not read yet. `programs` grows by one with each else."""

    call: Call
    strip: Strip
    inverted: bool
    links: list[tuple[Call | None, Strip]]
    programs: list[Program]
    mark: str = ""


def joined(block: Opened, end: Strip) -> Block:
    """The block of all its parts. Each `else if` is a block within the else of the one before it.

    A block within takes the closing braces of the next part as its own end, as the white space rules of Handlebars
    have it: of the first one it is the end of the whole block, of a later one its own opening.
    """
    programs = block.programs
    other: Program | None = None
    for position in range(len(block.links) - 1, -1, -1):
        call, strip = block.links[position]
        here = programs[position + 1]
        if call is None:
            other = here
            continue
        after = block.links[position + 1][1] if position + 1 < len(block.links) else Strip()
        close = end if position == 0 else strip
        other = Program([Block(call, here, other, strip, after, close)], chained=True)
    other_strip = block.links[0][1] if block.links else Strip()
    main: Program | None = programs[0]
    if block.inverted:
        main, other = other, main
    return Block(block.call, main, other, block.strip, other_strip, end, block.mark)
