"""Exports of workflows as YAML, as repositories have them: they become the body of an import.

A document has `resourceType` (Flow, FlowVersion or ExperienceFlowVersion), `resources` and `version` 1. Instead of ids
it has placeholders, such as `~exportplaceholderid-flow-pumpAlarm~`. Those of the workflows and versions that are
imported together get ids, which the import replaces by its own. Others name what the application has to have already
(devices, endpoints, pages): whoever imports may give the ids that take their places.

A workflow that does not say whether it is enabled is not, because timers would fire before anybody has looked at it.
The version `develop` of an experience workflow is the workflow itself.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from trunkline.actors.flows.kind import DEVELOP
from trunkline.actors.records.kind import Doc
from trunkline.actors.values.errors import Invalid
from trunkline.store import keys

VALUES_MAX: Final = 1_000_000
"""Values of all documents. References within a document could make billions of a few lines."""

_FLOW: Final = "Flow"
_VERSIONS: Final = ("FlowVersion", "ExperienceFlowVersion")
_PLACEHOLDER: Final = re.compile(r"~exportplaceholderid-[\w-]+?~")
_OF_FLOW: Final = ("name", "description", "enabled")
"""The fields that the version `develop` has for its workflow."""


class Read(NamedTuple):
    """The body of an import, and how often it names something by a placeholder that got no id."""

    body: Doc
    left: Counter[str]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads YAML 1.2 as JSON: a date is a text, and so are `yes`, `1:30` and `0x1`."""

    yaml_implicit_resolvers: Final[dict[str, Any]] = {}


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


def read_exports(files: Mapping[str, bytes], ids: Mapping[str, str]) -> Read:
    """Read files, by name; `ids` are by placeholder. Raises `Invalid`, which begins with the name."""
    flows: dict[str, Doc] = {}
    versions: list[Doc] = []
    for name, raw in files.items():
        for type, resource in _resources(name, raw):
            if type == _FLOW:
                flows[_id(name, resource, "id")] = {
                    "enabled": resource.get("flowClass") != "cloud",
                    **resource,
                }
            elif resource.get("version") == DEVELOP:
                flows[_id(name, resource, "flowId")] = _develop(type, resource)
            else:
                _id(name, resource, "flowId")
                versions.append(resource)
    for version in versions:
        if version["flowId"] not in flows and version.get("flowClass", "experience") == "experience":
            shell: Doc = {each: version[each] for each in _OF_FLOW if each in version}
            flows[version["flowId"]] = {**shell, "id": version["flowId"], "flowClass": "experience"}
    body = {"flows": list(flows.values()), "flowVersions": versions}
    if sum(1 for _ in zip(range(VALUES_MAX + 1), _values(body), strict=False)) > VALUES_MAX:
        raise Invalid(f"{', '.join(files)}: more than {VALUES_MAX} values.")
    made = {
        each: _made_id(each) for each in (*flows, *(version.get("id", "") for version in versions)) if each
    }
    left: Counter[str] = Counter()
    return Read(_filled(body, {**made, **ids}, left), left)


def _resources(name: str, raw: bytes) -> Iterator[tuple[str, Doc]]:
    try:
        documents = list(yaml.load_all(raw, Loader=_Loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        place = getattr(error, "problem_mark", None)
        where = "" if place is None else f" at line {place.line + 1}"
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise Invalid(f"{name}: is no YAML{where}: {reason}.") from None
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("resources"), list):
            raise Invalid(f"{name}: is no export; it has resourceType, resources and version.")
        type, version = document.get("resourceType"), document.get("version")
        if type != _FLOW and type not in _VERSIONS:
            raise Invalid(f"{name}: resourceType: is {type!r}; give {_FLOW}, {' or '.join(_VERSIONS)}.")
        if version != 1:
            raise Invalid(f"{name}: version: is {version!r}; exports are read in version 1.")
        for resource in document["resources"]:
            if not isinstance(resource, dict):
                raise Invalid(f"{name}: resources: has something that is no object.")
            yield type, resource


def _id(name: str, resource: Doc, field: str) -> str:
    id = resource.get(field)
    if not isinstance(id, str) or not id:
        raise Invalid(f"{name}: resources: {resource.get('name')!r} has no {field}.")
    return id


def _develop(type: str, version: Doc) -> Doc:
    """The workflow whose version `develop` this is."""
    left_out = ("flowId", "version", "id", "notes")
    fields = {name: value for name, value in version.items() if name not in left_out}
    if type == "ExperienceFlowVersion":
        fields["flowClass"] = "experience"
    return {**fields, "id": version["flowId"]}


def _values(value: Any) -> Iterator[Any]:
    """Yield a value and all within it, each as often as it stands there."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _made_id(placeholder: str) -> str:
    """An id for a placeholder; what is an id already stays."""
    if not _PLACEHOLDER.fullmatch(placeholder):
        return placeholder
    return hashlib.blake2b(placeholder.encode(), digest_size=keys.ID_BYTES).hexdigest()


def _filled(value: Any, ids: Mapping[str, str], left: Counter[str]) -> Any:
    """The value with ids in the places of placeholders; what has no id is counted in `left`."""
    if isinstance(value, str):

        def id_of(match: re.Match[str]) -> str:
            id = ids.get(match.group())
            if id is None:
                left[match.group()] += 1
            return match.group() if id is None else id

        return _PLACEHOLDER.sub(id_of, value)
    if isinstance(value, dict):
        return {name: _filled(each, ids, left) for name, each in value.items()}
    return [_filled(each, ids, left) for each in value] if isinstance(value, list) else value
