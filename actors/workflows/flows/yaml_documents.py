"""YAML of exports, read as JSON values: of workflows, and of whole template folders.

Instead of ids exports have placeholders, such as `~exportplaceholderid-flow-pumpAlarm~`. An id is made of each; an
import replaces it by its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.store import keys

VALUES_MAX: Final = 1_000_000
"""Values of all documents. References within a document could make billions of a few lines."""

NODES_MAX: Final = 250_000
"""Values that are written in one file: while it is read, each takes half a kilobyte or more."""

PLACEHOLDER: Final = re.compile(r"~(?:exportplaceholderid|losant)-[\w-]+?~")
"""What stands in the place of an id. The second form is that of older exports."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads YAML 1.2 as JSON: a date is a text, and so are `yes`, `1:30` and `0x1`."""

    yaml_implicit_resolvers: Final[dict[str, Any]] = {}

    def __init__(self, raw: bytes, pause: Callable[[], None]) -> None:
        super().__init__(raw)
        self._pause = pause
        self._nodes_left = NODES_MAX

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Count the node. This loader is not the one in C, which a deep text ends with the whole process."""
        self._pause()
        self._nodes_left -= 1
        if self._nodes_left < 0:
            raise ValueError(f"it has more than {NODES_MAX} values")
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_Loader.add_implicit_resolver("int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "float",
    re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"),
    list("-+.0123456789"),
)
_Loader.add_constructor("int", lambda _loader, node: int(node.value))
_Loader.add_constructor("float", lambda _loader, node: float(node.value))


def documents(name: str, raw: bytes, pause: Callable[[], None] = lambda: None) -> list[Any]:
    """The documents of a file; `pause` is called at each value. Raises `Invalid`, which begins with the name."""
    found = []
    try:
        loader = _Loader(raw, pause)
        while loader.check_data():
            found.append(loader.get_data())
        return found
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        place = getattr(error, "problem_mark", None)
        where = "" if place is None else f" at line {place.line + 1}"
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise Invalid(f"{name}: is not valid YAML{where}: {reason}.") from None


def resources_of(name: str, document: Any) -> Iterator[Doc]:
    """Yield the resources of an export. Raises `Invalid`."""
    if not isinstance(document, dict) or not isinstance(document.get("resources"), list):
        raise Invalid(f"{name}: is not a valid export; it has resourceType, resources and version.")
    if document.get("version") != 1:
        raise Invalid(f"{name}: version: is {document.get('version')!r}; exports are read in version 1.")
    for resource in document["resources"]:
        if not isinstance(resource, dict):
            raise Invalid(f"{name}: resources: has something that is not an object.")
        yield resource


def values(value: Any) -> Iterator[Any]:
    """Yield a value and all within it, each as often as it stands there."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def made_id(placeholder: str) -> str:
    """An id for a placeholder; what is an id already stays."""
    if not PLACEHOLDER.fullmatch(placeholder):
        return placeholder
    return hashlib.blake2b(placeholder.encode(), digest_size=keys.ID_BYTES).hexdigest()
