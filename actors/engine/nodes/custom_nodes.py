"""CustomNodeExecuteNode and CustomNodeCapNode: a workflow of the class customNode is run as a node of another one.

It gets a payload of its own: the values of its fields in `data`, its own globals, and what else the payload of the run
has at its root. Caps give its result and choose the output; without a cap there is no result, and output 0 follows.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import copied_value, copy_of
from trunkline.actors.engine.tools import (
    Config,
    Reader,
    Unusable,
    list_of,
    number_reader,
    path_of,
    template_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import END, Capped, CustomNode, NodeStep, Prepare, Visit, refused
from trunkline.actors.workflows.flows.versions import id_bytes


def _execute(config: Config) -> NodeStep:
    if config.get("isInstance") is True:
        raise Unusable("config.isInstance: this server has no custom nodes that all applications share.")
    id = id_bytes(text_of(config, "customNodeId"))
    if id is None:
        raise Unusable("config.customNodeId: give the id of a workflow of the class customNode.")
    named = text_of(config, "customNodeVersion") or None
    result_path = path_of(config, "resultPath")
    given = {text_of(field, "id"): field for field in list_of(config, "fields")}
    readers: dict[tuple[str, str], Reader] = {}

    def reader_of(field: dict[str, Any]) -> Reader:
        name, type = field["id"], field["type"]
        reader = readers.get((name, type))
        if reader is None:
            try:
                own = {"value": field.get("defaultValue")}
                reader = readers[name, type] = _reader(given.get(name, own), type)
            except Unusable as unusable:
                raise refused(f"config.fields, {name}: {unusable}") from None
        return reader

    def value_of(visit: Visit, field: dict[str, Any]) -> Any:
        value = price.computed(reader_of, field)(visit)
        return None if value is UNDEFINED else copy_of(value)

    async def run(visit: Visit, found: CustomNode) -> int:
        payload = {
            **visit.payload,
            "data": {
                field["id"]: value_of(visit, field)
                for field in found.config.get("fields", [])
                if field.get("type") != "section"
            },
            "globals": {**visit.run.application_globals, **found.globals},
            "triggerType": "customNodeStart",
        }
        capped = await visit.call(found, await copied_value(payload))
        visit.put(result_path, None if capped is None or capped.value is UNDEFINED else capped.value)
        return 0 if capped is None else capped.output

    def step(visit: Visit) -> Any:
        find = visit.run.find_program
        found = None if find is None else find(id, named)
        if found is None:
            where = "" if named is None else f" with a version {named!r:.100}"
            raise NodeError(
                "CustomNodeNotFound",
                f"config.customNodeId: this application has no custom node {id.hex()}{where}.",
            )
        if not isinstance(visit.payload, dict):
            raise refused("The payload is not an object, so a custom node cannot be run with it.")
        return run(visit, found)

    return step


def _reader(field: Config, type: str) -> Reader:
    """Reads the value that a field of a custom node is given."""
    if type == "payloadPath":
        path = path_of(field, "value")
        return lambda visit: None if path is None else path.get(visit.payload)
    if type == "numberTemplate":
        return number_reader(field, "value") or (lambda _visit: None)
    if type == "jsonTemplate":
        template = template_of(field, "value")
        return lambda visit: None if template is None else template.json(visit.payload, visit.run.now_ms)
    if type == "stringTemplate":
        return text_reader(field, "value")
    value = field.get("value")  # of a checkbox, or a choice
    return lambda _visit: value


def _cap(config: Config) -> NodeStep:
    source, branch = path_of(config, "resultSourcePath"), number_reader(config, "branchIndexTemplate")

    def step(visit: Visit) -> int:
        value = UNDEFINED if source is None else source.get(visit.payload)
        visit.capped = Capped(False, value, visit.payload, 0 if branch is None else int(branch(visit) != 0))
        return END

    return step


TYPES: Final[dict[str, Prepare]] = {"CustomNodeExecuteNode": _execute, "CustomNodeCapNode": _cap}
