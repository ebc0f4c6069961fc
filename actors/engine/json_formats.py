"""The formats of texts that JSON schemas of draft 4 name."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

TEXT_CHARS_MAX: Final = 2_048
"""A longer text is of no format."""

# The expressions never try the same characters in two ways, so their time is linear.
_DATE_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:(\d\d)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")


def _accepted(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def is_one(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return is_one


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return False
    # 60 is a leap second, which Python does not have; nor does it read fractions of any length.
    seconds = "59" if found[1] == "60" else found[1]
    zone = "+00:00" if text[-1] in "Zz" else text[-6:]
    return _accepted(datetime.fromisoformat)(f"{text[:10]}T{text[11:17]}{seconds}{zone}")


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def _bounded(is_one: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: len(text) <= TEXT_CHARS_MAX and is_one(text)


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    name: _bounded(is_one)
    for name, is_one in {
        "date": _accepted(date.fromisoformat),
        "date-time": _is_date_time,
        "email": lambda text: _EMAIL.fullmatch(text) is not None,
        "hostname": _is_hostname,
        "ipv4": _accepted(IPv4Address),
        "ipv6": _accepted(IPv6Address),
        "uri": lambda text: _URI.fullmatch(text) is not None,
    }.items()
}
"""Whether a text is of a format, by its name."""
