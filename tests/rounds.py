"""How many random examples a test makes: `EXAMPLES=3 pytest FILE` makes three times as many as an ordinary run."""

from __future__ import annotations

import os


def examples(ordinary: int) -> int:
    """The examples of a test that makes so many in an ordinary run."""
    return ordinary * int(os.environ.get("EXAMPLES", "1"))
