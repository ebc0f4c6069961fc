"""Path parameters: how their values are parsed and documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import parse_id
from trunkline.actors.platform.jobs.job import parse_job_id

NAME_CHARS_MAX: Final = 255
"""Characters of a name that a path may contain in place of an id."""

_ID: Final = {"pattern": r"^[A-Fa-f0-9]{24}$"}


class PathParameter(NamedTuple):
    """A path parameter: its placeholder in the path, its name in `Call.ids`, its parser and the form of its texts.

    `read` raises `Invalid` with the name of the placeholder. `form` describes the texts in the words of JSON Schema.
    """

    placeholder: str
    name: str
    read: Callable[[str], Any]
    form: Mapping[str, Any]


def _text(text: str) -> str:
    return text


def _id_or_name(placeholder: str) -> Callable[[str], str]:
    """The parser of an id or a name. The record tells which of the two a text is.

    A path is decoded before it is matched, so no name may have a slash; a version from an import that has one is found
    by its id only.
    """

    def read(text: str) -> str:
        if len(text) > NAME_CHARS_MAX:
            raise Invalid(f"{placeholder}: has {len(text)} characters; a name has at most {NAME_CHARS_MAX}.")
        return text

    return read


_NAMED: Final = {"minLength": 1, "maxLength": NAME_CHARS_MAX}

SPECIAL_PARAMETERS: Final[Mapping[str, tuple[str, Callable[[str], Any], Mapping[str, Any]]]] = {
    "name": ("name", _text, {"pattern": r"^[0-9a-zA-Z_-]{1,255}$"}),
    "jobId": ("job", parse_job_id, {"pattern": r"^([A-Fa-f0-9]{24}|[0-9a-zA-Z_-]{16})$"}),
    "webhookToken": ("webhookToken", _text, {"pattern": r"^[0-9a-f]{48}[0-9A-Za-z_-]{32}$"}),
    "filePath": ("filePath", _text, {"minLength": 1}),
    "flowVersionId": ("flowVersion", _id_or_name("flowVersionId"), _NAMED),
    "experienceVersionIdOrName": (
        "experienceVersion",
        _id_or_name("experienceVersionIdOrName"),
        _NAMED,
    ),
}
"""The path parameters that are not ids of 24 hexadecimal digits: name, parser and form of each."""


REST: Final = frozenset({"filePath"})
"""The path parameters that are all segments of a path that are left, with the slashes between."""


def parse_path(path: str) -> tuple[PathParameter, ...]:
    """The parameters of a path in order. Raises TypeError for one whose form is not known."""
    return tuple(_parameter(piece[1:-1]) for piece in path.split("/") if piece.startswith("{"))


def _parameter(placeholder: str) -> PathParameter:
    if placeholder in SPECIAL_PARAMETERS:
        return PathParameter(placeholder, *SPECIAL_PARAMETERS[placeholder])
    name = placeholder.removesuffix("Id")
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
