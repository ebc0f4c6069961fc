"""A way to break the server on purpose (`mutations.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """`what` is the mistake, `old` the text in `file` that becomes `new`. `seeds` are tried, if they are named."""

    what: str
    file: str
    old: str
    new: str
    seeds: str = ""
