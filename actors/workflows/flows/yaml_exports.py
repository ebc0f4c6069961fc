"""Exports of workflows as YAML, as repositories have them: they become the body of an import.

A document has `resourceType` (Flow, FlowVersion or ExperienceFlowVersion), `resources` and `version` 1. Instead of ids
it has placeholders, such as `~exportplaceholderid-flow-pumpAlarm~`. Those of the workflows and versions that are
imported together get ids, which the import replaces by its own. Others name what the application has to have already
(devices, endpoints, pages): whoever imports may give the ids that take their places.

A workflow that does not say whether it is enabled is not, because timers would fire before anybody has looked at it.
The version `develop` of an experience workflow is the workflow itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.workflows.flows.kind import DEVELOP
from trunkline.actors.workflows.flows.yaml_documents import (
    PLACEHOLDER,
    VALUES_MAX,
    documents,
    made_id,
    resources_of,
    values,
)

_FLOW: Final = "Flow"
_VERSIONS: Final = ("FlowVersion", "ExperienceFlowVersion")
_OF_FLOW: Final = ("name", "description", "enabled")
"""The fields that the version `develop` has for its workflow."""


class Read(NamedTuple):
    """The body of an import, and how often it names something by a placeholder that got no id."""

    body: Doc
    left: Counter[str]


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
                flows[_id(name, resource, "flowId")] = develop_of(type, resource)
            else:
                _id(name, resource, "flowId")
                versions.append(resource)
    for version in versions:
        if version["flowId"] not in flows and version.get("flowClass", "experience") == "experience":
            shell: Doc = {each: version[each] for each in _OF_FLOW if each in version}
            flows[version["flowId"]] = {**shell, "id": version["flowId"], "flowClass": "experience"}
    body = {"flows": list(flows.values()), "flowVersions": versions}
    if sum(1 for _ in zip(range(VALUES_MAX + 1), values(body), strict=False)) > VALUES_MAX:
        raise Invalid(f"{', '.join(files)}: more than {VALUES_MAX} values.")
    made = {
        each: made_id(each) for each in (*flows, *(version.get("id", "") for version in versions)) if each
    }
    left: Counter[str] = Counter()
    return Read(_filled(body, {**made, **ids}, left), left)


def _resources(name: str, raw: bytes) -> Iterator[tuple[str, Doc]]:
    for document in documents(name, raw):
        type = document.get("resourceType") if isinstance(document, dict) else _FLOW
        if type != _FLOW and type not in _VERSIONS:
            is_given = "is missing" if type is None else f"is {type!r}"
            raise Invalid(f"{name}: resourceType: {is_given}; give {_FLOW}, {' or '.join(_VERSIONS)}.")
        for resource in resources_of(name, document):
            yield type, resource


def _id(name: str, resource: Doc, field: str) -> str:
    id = resource.get(field)
    if not isinstance(id, str) or not id:
        raise Invalid(f"{name}: resources: {resource.get('name')!r} has no {field}.")
    return id


def develop_of(type: str, version: Doc) -> Doc:
    """The workflow whose version `develop` this is."""
    left_out = ("flowId", "version", "id", "notes")
    fields = {name: value for name, value in version.items() if name not in left_out}
    if type == "ExperienceFlowVersion":
        fields["flowClass"] = "experience"
    return {**fields, "id": version["flowId"]}


def _filled(value: Any, ids: Mapping[str, str], left: Counter[str]) -> Any:
    """The value with ids in the places of placeholders; what has no id is counted in `left`."""
    if isinstance(value, str):

        def id_of(match: re.Match[str]) -> str:
            id = ids.get(match.group())
            if id is None:
                left[match.group()] += 1
            return match.group() if id is None else id

        return PLACEHOLDER.sub(id_of, value)
    if isinstance(value, dict):
        return {name: _filled(each, ids, left) for name, each in value.items()}
    return [_filled(each, ids, left) for each in value] if isinstance(value, list) else value
