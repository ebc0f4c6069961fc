"""Definitions: what a version of a workflow does, checked as a whole, as it is stored.

Owns the rules between the parts of a definition. Those of one part are in its type. Types of nodes are not checked:
a node of a type that this server cannot run is stored, so that workflows of other servers can be kept and edited here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.global_values import check_global
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.core.values.nesting import check_each
from trunkline.actors.core.values.terms import RESERVED_TOPICS
from trunkline.actors.workflows.flows.due_times import INACTIVITY, TIMER
from trunkline.actors.workflows.flows.schedules import schedule_of
from trunkline.actors.workflows.flows.triggers import OWN_BROKER, TYPES
from trunkline.limits.table import Limits

PARTS: Final = ("triggers", "nodes", "globals", "minimumAgentVersion", "customNodeConfig")
"""The fields of a definition."""

_LISTS: Final = ("triggers", "nodes", "globals")
_SECONDS_MIN: Final = {"edge": 0.1, "embedded": 0.001}
"""The least interval of timers by the class of the workflow; of those that run on this server it is 1."""
_CUSTOM_NODE: Final = "CustomNodeExecuteNode"


def split(named: Doc) -> tuple[Doc, Doc]:
    """The fields of a body: those of the record, and those of the definition."""
    record = {name: value for name, value in named.items() if name not in PARTS}
    return record, {name: value for name, value in named.items() if name in PARTS}


def check_definition(definition: Doc, flow_class: str, limits: Limits, *, at: str = "") -> None:
    """Raise `Invalid` for the first part that is not acceptable; the sentence begins with its place, after `at`."""
    nodes: list[Doc] = definition.get("nodes", [])
    triggers: list[Doc] = definition.get("triggers", [])
    for name in _LISTS:
        count, most = len(definition.get(name, [])), limits.flow_parts_max
        if count > most:
            raise Invalid(f"{at}{name}: has {count} items; at most {most} are allowed.")
    for name in ("triggers", "nodes"):
        for field in ("config", "meta"):
            values = [part.get(field) for part in definition.get(name, [])]
            check_each(values, partial(_place, at, name, field))
    _check_ids(nodes, at)
    known = {node["id"] for node in nodes if "id" in node}
    for position, trigger in enumerate(triggers):
        place = f"{at}triggers[{position}]"
        classes = TYPES[trigger["type"]].classes
        if classes is not None and flow_class not in classes:
            valid = " and ".join(sorted(classes))
            raise Invalid(
                f"{place}.type: {trigger['type']} is not valid for {flow_class} workflows; "
                f"it is valid for {valid} workflows."
            )
        if trigger["type"] == TIMER or trigger["type"] in INACTIVITY:
            _check_time(trigger, flow_class, place)
    for name in ("triggers", "nodes"):
        for position, part in enumerate(definition.get(name, [])):
            _check_outputs(part, known, at, name, position)
    _check_globals(definition.get("globals", []), at)
    size, most = len(msgspec.json.encode(definition)), limits.flow_bytes_max
    if size > most:
        raise Invalid(
            f"{at.removesuffix('.') or 'The workflow'}: has {size} bytes of triggers, nodes and globals as JSON; "
            f"at most {most} are allowed."
        )


def _place(at: str, name: str, field: str, position: int) -> str:
    return f"{at}{name}[{position}].{field}"


def _check_time(trigger: Doc, flow_class: str, place: str) -> None:
    try:
        schedule_of(trigger.get("config", {}), seconds_min=_SECONDS_MIN.get(flow_class, 1))
    except Invalid as refusal:
        raise Invalid(f"{place}.config.{refusal.message}") from None


def never_due(definition: Doc) -> Iterator[tuple[int, str]]:
    """The positions of triggers that depend on time and are never due, each with the sentence that tells of it."""
    for position, trigger in enumerate(definition.get("triggers", [])):
        config = trigger.get("config", {})
        if trigger["type"] in INACTIVITY and "seconds" not in config:
            yield (
                position,
                "config.seconds: is not set, so the trigger never fires; give the seconds of silence.",
            )
        elif trigger["type"] == TIMER and "seconds" not in config and not config.get("cron"):
            yield (
                position,
                "config.seconds: is not set and neither is cron, so the timer never fires; give one of them.",
            )


def never_started(definition: Doc) -> Iterator[tuple[int, str]]:
    """The positions of triggers that nothing starts here, each with the sentence that tells of it."""
    buttons: dict[str, int] = {}
    for position, trigger in enumerate(definition.get("triggers", [])):
        type = TYPES[trigger["type"]]
        key = trigger.get("key", "")
        if type.key and not (key and type.key.form.fullmatch(key)):
            wrong = f"is {key[:100]!r}" if key else "is not set"
            yield position, f"key: {wrong}, so the trigger never fires; give {type.key.words}."
        elif not type.is_started:
            yield position, f"type: nothing starts triggers of the type {trigger['type']} on this server."
        elif trigger["type"] == "mqttTopic":
            yield from ((position, message) for message in _never_published(key, trigger.get("config", {})))
        elif trigger["type"] == "virtualButton":
            first = buttons.setdefault(key, position)
            if not key and not _ids_of_button(trigger):
                yield position, "key: is not set, so no press names this button; give a key."
            elif key and first != position:
                also = f"key: {key[:100]!r} is also the key of triggers[{first}]"
                yield position, f"{also}, so a press of it starts only that one; give each button its own."


def _never_published(topic: str, config: Doc) -> Iterator[str]:
    """Why nothing is ever published to the topic of a trigger."""
    broker = config.get("integrationId", "")
    if broker in OWN_BROKER:
        for prefix in RESERVED_TOPICS:
            if topic.startswith(prefix):
                yield (
                    f"key: is {topic[:100]!r}, so the trigger never fires; give a topic that does not begin with "
                    f"{prefix}, as nothing is published there."
                )
    elif not is_id(broker):
        yield (
            f"config.integrationId: is {broker[:100]!r}, so the trigger never fires; give the id of an integration, or "
            "leave it out for the broker of the application."
        )


def check_times(definition: Doc, at: str = "") -> None:
    """Raise `Invalid` for the first trigger of a workflow that is to run that would never fire."""
    for position, message in never_due(definition):
        raise Invalid(f"{at}triggers[{position}].{message} Or save the workflow with enabled false.")


def _check_ids(nodes: list[Doc], at: str) -> None:
    counts = Counter(node["id"] for node in nodes if node.get("id"))
    if len(counts) == sum(counts.values()):
        return
    for position, node in enumerate(nodes):
        if counts[node.get("id")] > 1:
            raise Invalid(f"{at}nodes[{position}].id: Node IDs must be unique; {node['id']!r} appears twice.")


def _check_outputs(part: Doc, known: set[str], at: str, name: str, position: int) -> None:
    own = part.get("id")
    for output, ids in enumerate(part.get("outputIds", ())):
        if not known.issuperset(ids) or own in ids:
            _refuse_output(part, ids, known, f"{at}{name}[{position}]", output)


def _refuse_output(part: Doc, ids: list[str], known: set[str], place: str, output: int) -> None:
    for id in ids:
        if id not in known:
            raise Invalid(f"{place}.outputIds[{output}]: Referenced output ID {id} does not exist.")
        if id == part.get("id"):
            raise Invalid(f"{place}.outputIds[{output}]: A node cannot connect to itself ({id}).")


def _check_globals(globals: list[Doc], at: str) -> None:
    seen: set[str] = set()
    for position, each in enumerate(globals):
        place = f"{at}globals[{position}]"
        if each["key"] in seen:
            raise Invalid(f"{place}.key: {each['key']} appears twice in the list; give each key once.")
        seen.add(each["key"])
        check_global(each["json"], place)


def trigger_keys(definition: Doc) -> list[list[str]]:
    """The type and the key of each trigger, as records keep them."""
    return [[each["type"], each.get("key", "")] for each in definition.get("triggers", [])]


def used_custom_nodes(definition: Doc) -> list[str]:
    """The ids of the custom nodes that a definition uses, in the order of their first use."""
    ids: dict[str, None] = {}
    for node in definition.get("nodes", []):
        id = node.get("config", {}).get("customNodeId")
        if node["type"] == _CUSTOM_NODE and isinstance(id, str):
            ids[id.lower()] = None
    return list(ids)


def used_versions(definition: Doc) -> list[tuple[str, str]]:
    """The custom nodes that a definition uses, each with the name of the version, without repetition."""
    used: dict[tuple[str, str], None] = {}
    for node in definition.get("nodes", []):
        config = node.get("config", {})
        id, version = config.get("customNodeId"), config.get("customNodeVersion") or "default"
        if node["type"] == _CUSTOM_NODE and isinstance(id, str) and isinstance(version, str):
            used[id.lower(), version] = None
    return list(used)


def shown_parts(definition: Doc) -> Doc:
    """The fields of a definition as an answer has them: a list that is left out is empty."""
    return {name: definition.get(name, []) for name in _LISTS} | {
        name: definition[name] for name in PARTS if name not in _LISTS and name in definition
    }


def with_new_ids(definition: Doc, new_ids: Mapping[str, str]) -> Doc:
    """The definition with new ids in its triggers and nodes, wherever a text is an old id or begins with one and `-`.

    The keys of virtual buttons begin with the id of their workflow in this way.
    """
    if not new_ids:
        return definition
    return {
        name: _mapped(part, new_ids) if name in ("triggers", "nodes") else part
        for name, part in definition.items()
    }


def _mapped(value: Any, new_ids: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        new = new_ids.get(value[:24].lower()) if len(value) >= 24 else None
        return value if new is None or value[24:25] not in ("", "-") else new + value[24:]
    if isinstance(value, list):
        return [_mapped(each, new_ids) for each in value]
    if isinstance(value, dict):
        return {key: _mapped(each, new_ids) for key, each in value.items()}
    return value


def button_of(definition: Doc, flow_id: str, key: str) -> int | None:
    """The index of the virtual button that a press names: by its key, or by its id, also after that of the workflow."""
    for index, trigger in enumerate(definition.get("triggers", [])):
        if trigger["type"] == "virtualButton":
            ids = _ids_of_button(trigger)
            if key == trigger.get("key") or key.removeprefix(f"{flow_id}-") in ids:
                return index
    return None


def _ids_of_button(trigger: Doc) -> set[str]:
    meta = trigger.get("meta", {})
    return {meta[name] for name in ("id", "uiId") if meta.get(name)}


def trigger_at(triggers: list[Doc], index: int, type: str, key: str) -> int | None:
    """The trigger at `index`, or where it is now if the definition has changed; None if it is gone."""
    if index < len(triggers):
        expected = triggers[index]
        if expected["type"] == type and expected.get("key", "") == key:
            return index
    for at, each in enumerate(triggers):
        if each["type"] == type and each.get("key", "") == key:
            return at
    return None
