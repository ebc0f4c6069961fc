"""Path parameters: how their values are parsed and documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.jobs.job import parse_job_id
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.ids import parse_id

_ID = r"^[A-Fa-f0-9]{24}$"


class PathParameter(NamedTuple):
    """A path parameter: its placeholder in the path, its name in `Call.ids`, its parser and its pattern.

    `read` raises `Invalid` with the name of the placeholder.
    """

    placeholder: str
    name: str
    read: Callable[[str], Any]
    pattern: str


def _text(text: str) -> str:
    return text


SPECIAL_PARAMETERS: Final[Mapping[str, tuple[Callable[[str], Any], str]]] = {
    "name": (_text, r"^[0-9a-zA-Z_-]{1,255}$"),
    "jobId": (parse_job_id, r"^([A-Fa-f0-9]{24}|[0-9a-zA-Z_-]{16})$"),
}
"""The path parameters that are not ids of 24 hexadecimal digits."""


def parse_path(path: str) -> tuple[PathParameter, ...]:
    """The parameters of a path in order. Raises TypeError for one whose form is not known."""
    return tuple(_parameter(piece[1:-1]) for piece in path.split("/") if piece.startswith("{"))


def _parameter(placeholder: str) -> PathParameter:
    name = placeholder.removesuffix("Id")
    if placeholder in SPECIAL_PARAMETERS:
        return PathParameter(placeholder, name, *SPECIAL_PARAMETERS[placeholder])
    if name == placeholder:
        raise TypeError(f"{{{placeholder}}} is not an id; define its parser in SPECIAL_PARAMETERS")
    return PathParameter(placeholder, name, lambda text: parse_id(text, placeholder), _ID)


def fits(parameter: PathParameter, text: str) -> bool:
    """Whether a text is a value of the parameter."""
    try:
        parameter.read(text)
    except Invalid:
        return False
    return True
