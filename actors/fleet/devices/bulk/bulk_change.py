"""A change of many devices, applied to one of them: fields, then operations in order.

Pure functions over the record and the declared attributes. An operation on a tag, an attribute or a part of one that
the device does not have changes nothing, because the devices of a selection may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.terms import Tag
from trunkline.actors.fleet.devices.bulk.bulk_messages import (
    AddOperation,
    DeviceChange,
    Operation,
    RemoveOperation,
    SetOperation,
)
from trunkline.actors.fleet.devices.record.attributes import Attributes
from trunkline.actors.fleet.devices.record.messages import AttributePatch, DevicePatch
from trunkline.actors.fleet.devices.record.terms import Attribute

FIELDS: Final = {
    field.encode_name: field.name
    for field in msgspec.structs.fields(DevicePatch)
    if field.name not in ("tags", "attributes")
}
"""The targets that are fields of the device, with the names of their fields in a `DevicePatch`."""


TAGS_MAX: Final = 100
"""The API's bound; the message types have the same number for whole lists."""


def applied(change: DeviceChange, doc: Doc, attributes: Attributes) -> tuple[DevicePatch, Attributes]:
    """Return the fields that change on a device with this record, and its attributes after the change.

    Raises `Invalid` if the device cannot take the change.
    """
    patch = change.fields
    if patch.attributes is not msgspec.UNSET:
        attributes = attributes.replaced(patch.attributes)
    tags = doc["tags"] if patch.tags is msgspec.UNSET else msgspec.to_builtins(patch.tags)
    fields: dict[str, Any] = {}
    for operation in change.operations:
        target = operation.target
        if isinstance(operation, AddOperation):
            attributes = _with_attribute(attributes, operation)
        elif target in FIELDS:
            fields[FIELDS[target]] = operation.value if isinstance(operation, SetOperation) else None
        elif target == "tag":
            tags = _with_tag(tags, operation)
        else:
            attributes = _with_part(attributes, operation)
    if len(tags) > TAGS_MAX:
        raise Invalid(f"tags: the device would have {len(tags)} tags; a device has at most {TAGS_MAX}.")
    return msgspec.structs.replace(patch, tags=msgspec.convert(tags, list[Tag]), **fields), attributes


def _with_tag(tags: list[dict[str, str]], operation: SetOperation | RemoveOperation) -> list[dict[str, str]]:
    """Return the tags with one value for the key of the operation, or with none."""
    if isinstance(operation, SetOperation):
        assert isinstance(operation.value, Tag)
        new = {"key": operation.value.key, "value": operation.value.value}
        if [tag for tag in tags if tag["key"] == new["key"]] == [new]:
            return tags
        return [*(tag for tag in tags if tag["key"] != new["key"]), new]
    return [tag for tag in tags if tag["key"] != operation.tag_key]


def _with_attribute(attributes: Attributes, operation: AddOperation) -> Attributes:
    """Return the attributes with one more, or with the `system` of one that is declared already."""
    new = operation.value
    if operation.target == "attribute" or attributes.number(new.name) is None:
        return attributes.added(new)
    _check_type(attributes, new)
    system = {} if new.system is msgspec.UNSET else msgspec.to_builtins(new.system)
    return _edited(attributes, new.name, lambda doc: {**doc, "system": system})


def _check_type(attributes: Attributes, new: Attribute) -> None:
    declared = attributes.find(new.name)["dataType"]
    if declared != new.data_type:
        raise Invalid(f"dataType: {new.name} is declared as {declared} and stays so.")


def _with_part(attributes: Attributes, operation: Operation) -> Attributes:
    """Return the attributes with the change of one of them; without it if it is removed."""
    assert not isinstance(operation, AddOperation)
    name, target = str(operation.attribute_name), operation.target
    if attributes.number(name) is None:
        return attributes
    if isinstance(operation, RemoveOperation):
        match target:
            case "attribute":
                return attributes.removed(name)
            case "attributeDescription":
                return _edited(attributes, name, lambda doc: _without(doc, "description"))
            case _:
                return _edited(attributes, name, lambda doc: _without_tag(doc, str(operation.tag_key)))
    value = operation.value
    if target == "attributeTag":
        assert isinstance(value, Tag)
        added = {value.key: value.value}
        return _edited(
            attributes, name, lambda doc: {**doc, "attributeTags": {**doc.get("attributeTags", {}), **added}}
        )
    if target == "attributeName":
        return attributes if value == name else attributes.patched(name, AttributePatch(name=str(value)))[0]
    field = "description" if target == "attributeDescription" else "contentType"
    return _edited(attributes, name, lambda doc: {**doc, field: value})


def _edited(attributes: Attributes, name: str, edit: Callable[[Doc], Doc]) -> Attributes:
    docs = [edit(doc) if doc["name"] == name else doc for doc in attributes.docs]
    return Attributes(docs, attributes.next_number)


def _without(doc: Doc, field: str) -> Doc:
    return {name: value for name, value in doc.items() if name != field}


def _without_tag(doc: Doc, key: str) -> Doc:
    tags = _without(doc.get("attributeTags", {}), key)
    return {**doc, "attributeTags": tags} if tags else _without(doc, "attributeTags")
