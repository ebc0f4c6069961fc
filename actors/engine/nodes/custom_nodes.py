"""CustomNodeExecuteNode and CustomNodeCapNode: a workflow of the class customNode is run as a node of another one.

It gets a payload of its own: the values of its fields in `data`, its own globals, and what else the payload of the run
has at its root. Caps give its result and choose the output; without a cap there is no result, and output 0 follows.
"""

from __future__ import annotations

from typing import Any, Final

from trunkline.actors.core.formulas import price
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.engine.bodies import json_reader
from trunkline.actors.engine.errors import NodeError
from trunkline.actors.engine.heavy_work import copied_value, copy_of
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import (
    RESULT,
    Config,
    FlagSetting,
    JsonSetting,
    MixedSetting,
    NumberSetting,
    PathSetting,
    TextSetting,
)
from trunkline.actors.engine.tools import (
    Reader,
    Unusable,
    is_on,
    number_reader,
    objects_of,
    path_of,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import END, Capped, CustomNode, NodeStep, Visit, refused
from trunkline.actors.workflows.flows.versions import id_bytes

_CUSTOM_NODE_ID: Final = TextSetting("customNodeId", is_needed=True)
_CUSTOM_NODE_VERSION: Final = TextSetting("customNodeVersion")
_FIELDS: Final = JsonSetting("fields")
_ID: Final = TextSetting("id")
_VALUE: Final = MixedSetting("value")
_FIELD: Final = (_ID, _VALUE)
"""What is given to a field that a custom node declares itself."""
_IS_INSTANCE: Final = FlagSetting("isInstance")
_RESULT_SOURCE_PATH: Final = PathSetting("resultSourcePath")
_BRANCH_INDEX: Final = NumberSetting("branchIndexTemplate")


def _execute(config: Config) -> NodeStep:
    if is_on(config, _IS_INSTANCE):
        raise Unusable("config.isInstance: this server has no custom nodes that all applications share.")
    id = id_bytes(text_of(config, _CUSTOM_NODE_ID))
    if id is None:
        raise Unusable("config.customNodeId: give the id of a workflow of the class customNode.")
    named = text_of(config, _CUSTOM_NODE_VERSION) or None
    result_path = path_of(config, RESULT)
    fields = objects_of(config, _FIELDS, _FIELD)
    given = {text_of(field, _ID): field for field in fields}
    readers: dict[tuple[str, str], Reader] = {}

    def reader_of(field: dict[str, Any]) -> Reader:
        name, type = field["id"], field["type"]
        reader = readers.get((name, type))
        if reader is None:
            try:
                at = f"{config.place(_FIELDS)}, {name}"
                own = Config({"value": field.get("defaultValue")}, _FIELD, at)
                reader = readers[name, type] = _reader(given.get(name, own), type)
            except Unusable as unusable:
                raise refused(str(unusable)) from None
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
        path = path_of(field, _VALUE)
        return lambda visit: None if path is None else path.get(visit.payload)
    if type == "numberTemplate":
        return number_reader(field, _VALUE) or (lambda _visit: None)
    if type == "jsonTemplate":
        return json_reader(field, _VALUE) if text_of(field, _VALUE) else lambda _visit: None
    if type == "stringTemplate":
        return text_reader(field, _VALUE)
    value = field[_VALUE]  # of a checkbox, or a choice
    return lambda _visit: value


def _cap(config: Config) -> NodeStep:
    source, branch = path_of(config, _RESULT_SOURCE_PATH), number_reader(config, _BRANCH_INDEX)

    def step(visit: Visit) -> int:
        value = UNDEFINED if source is None else source.get(visit.payload)
        visit.capped = Capped(False, value, visit.payload, 0 if branch is None else int(branch(visit) != 0))
        return END

    return step


TYPES: Final[dict[str, NodeType]] = {
    "CustomNodeExecuteNode": NodeType(
        _execute, Form("logic", (_CUSTOM_NODE_ID, _CUSTOM_NODE_VERSION, _FIELDS, _IS_INSTANCE, RESULT))
    ),
    "CustomNodeCapNode": NodeType(_cap, Form("logic", (_RESULT_SOURCE_PATH, _BRANCH_INDEX))),
}
