"""Names and values of headers that others give: what a request can carry."""

from __future__ import annotations

import re
from typing import Final

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
OF_CONNECTIONS: Final = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers about the connection and the length of the body, which are those of whoever sends the request."""


def has_control(value: str) -> bool:
    """Whether a value has a line break or another control character, which no header may have."""
    return any(each < " " and each != "\t" for each in value)
