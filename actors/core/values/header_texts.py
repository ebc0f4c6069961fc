"""Names and values of headers that others give: what a request can carry."""

from __future__ import annotations

import re
from typing import Final

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def has_control(value: str) -> bool:
    """Whether a value has a line break or another control character, which no header may have."""
    return any(each < " " and each != "\t" for each in value)
