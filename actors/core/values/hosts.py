"""Names and addresses of hosts to which this server connects. Owns their form; `core/outgoing/` resolves them."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

_NAME_CHARS_MAX: Final = 253
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?")
"""Names of networks of one's own have underscores, too."""


def is_host(text: str) -> bool:
    """Whether a text can be the name or the address of a host. An IPv6 address has neither brackets nor a zone."""
    if ":" in text:
        return "%" not in text and _is_address(text)
    try:
        name = text.encode("idna").decode().removesuffix(".")
    except UnicodeError:  # also for an empty label, and for one that is too long
        return False
    return len(name) <= _NAME_CHARS_MAX and all(_LABEL.fullmatch(label) for label in name.split("."))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
