"""Formatting the tables of the documentation as Markdown. Does not know their contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A Markdown table. A bar inside a cell is escaped."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def code(text: str) -> str:
    """Text as code; empty text stays empty."""
    return f"`{text}`" if text else ""


def codes(names: Sequence[str]) -> str:
    """Names as code, separated by commas."""
    return ", ".join(map(code, names))


def anchor(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def first_sentence(doc: str | None) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=\.) ", first_paragraph(doc))[0]


def first_paragraph(doc: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return re.sub(r"\s+", " ", (doc or "").strip().split("\n\n")[0])
