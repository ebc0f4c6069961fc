"""The placeholders of paths: how their values are read, and how they are documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.jobs.job import parse_job_id
from trunkline.actors.values.ids import parse_id

_ID = r"^[A-Fa-f0-9]{24}$"


class PathPart(NamedTuple):
    """A placeholder: as it stands in the path, its name in `Call.ids`, its reader and its pattern.

    `read` raises `Invalid` naming the placeholder.
    """

    placeholder: str
    name: str
    read: Callable[[str], Any]
    pattern: str


def _text(text: str) -> str:
    return text


OTHERS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "name": (_text, r"^[0-9a-zA-Z_-]{1,255}$"),
    "jobId": (parse_job_id, r"^([A-Fa-f0-9]{24}|[0-9a-zA-Z_-]{16})$"),
}
"""The placeholders that are not simply ids of 24 hexadecimal digits."""


def parts_of(path: str) -> tuple[PathPart, ...]:
    """The placeholders of a path in order. Raises TypeError for one that nobody knows how to read."""
    return tuple(_part(piece[1:-1]) for piece in path.split("/") if piece.startswith("{"))


def _part(placeholder: str) -> PathPart:
    name = placeholder.removesuffix("Id")
    if placeholder in OTHERS:
        return PathPart(placeholder, name, *OTHERS[placeholder])
    if name == placeholder:
        raise TypeError(f"{{{placeholder}}} is no id; say in OTHERS how it is read")
    return PathPart(placeholder, name, lambda text: parse_id(text, placeholder), _ID)
