"""What an operator reads: standard output for what was asked, standard error for the rest, each in sentences.

What is printed is shown as it is: a path or an address may hold what looks like markup.
"""

from __future__ import annotations

import os
from typing import Final

from rich.console import Console

OUT: Final = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
ERR: Final = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def sentence(failure: BaseException) -> str:
    """What to tell of a failure; of a group, its first one. An error of the system names its file."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    if isinstance(failure, OSError) and failure.filename is not None:
        return f"{os.fsdecode(failure.filename)}: {failure.strerror}."
    return str(failure)
