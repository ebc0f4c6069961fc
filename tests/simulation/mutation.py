"""A way to break the server on purpose (`mutations.py`), and a fault that was found (`regressions.py`)."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """`what` is the mistake, `old` the text in `file` that becomes `new`. `seeds` are tried, if they are named."""

    what: str
    file: str
    old: str
    new: str
    seeds: str = ""


class Regression(NamedTuple):
    """A fault: what was wrong, what puts it back, the commit that has mended it, and a seed that finds it, if known."""

    what: str
    back: tuple[Mutation, ...]
    commit: str
    seed: int | None = None
