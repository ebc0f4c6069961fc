"""Why a text is not JSON, in a sentence: what msgspec says, but for halves of surrogate pairs.

Of one that stands at the end of the text it says that the text is truncated.
"""

from __future__ import annotations

import re
from typing import Final

_HALF: Final = re.compile(rb'\\u[dD][89abAB][0-9a-fA-F]{2}(?=[^"]*")')
"""The first half of a pair, as an escape, in a text that ends after it."""
_END_BYTES: Final = 11
"""Six for the escape, and fewer than six after it."""


def json_problem(error: Exception, text: bytes) -> str:
    """What is wrong with a text of which msgspec has raised `error`."""
    problem = str(error)
    if "surrogate" in problem:
        return f"a text in it has half of a surrogate pair{problem[problem.rfind(' (byte') :]}"
    begin = max(0, len(text) - _END_BYTES)
    half = _HALF.search(text[begin:])
    if half is not None and "truncated" in problem:
        at = begin + half.start()
        before = text[:at]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:  # the escape itself is not escaped
            return f"a text in it has half of a surrogate pair (byte {at})"
    return problem
