"""The declared attributes of a device: names, types, and the small numbers that replace the names on disk.

A stored point contains the number of an attribute instead of its name, so a point costs tens of bytes. A number is
never used twice on a device, so an attribute that was deleted and declared again does not get its old values back.

An `Attributes` is immutable; a change of the declarations creates a new one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from trunkline.actors.core.values.errors import Invalid, NotFound
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.record.coercion import COERCE
from trunkline.actors.fleet.devices.record.messages import AttributePatch, StateReport
from trunkline.actors.fleet.devices.record.terms import Attribute
from trunkline.store.codec import encode

ATTRIBUTES_MAX = 256
"""The API's bound; the message types have the same number for whole lists."""

_PLAIN: dict[str, frozenset[type]] = {"number": frozenset({int, float}), "boolean": frozenset({bool})}
"""Python types whose values are stored unchanged, if a double can represent their size."""

_LARGEST = sys.float_info.max
NAMES_TOLD_MAX: Final = 1_000
"""After so many undeclared names of one call no more are gathered."""

META = -1
FLOW_VERSION = -2
"""Negative numbers in a stored point are not attributes."""


class Attributes:
    """The attributes as documents `{"n": number, "name", "dataType", ...}`, with lookups by name and by number."""

    __slots__ = ("__weakref__", "_types", "docs", "names", "next_number")

    def __init__(self, docs: list[dict[str, Any]], next_number: int) -> None:
        self.docs = docs
        self.next_number = next_number
        """The number that the next new attribute gets. Stored with the documents."""
        self.names: dict[int, str] = {doc["n"]: doc["name"] for doc in docs}
        self._types = {
            doc["name"]: (
                doc["n"],
                COERCE[doc["dataType"]],
                _PLAIN.get(doc["dataType"], frozenset()),
                doc["dataType"],
            )
            for doc in docs
        }

    def shared(self) -> Attributes:
        """Return the equal instance that is in memory already: devices with the same declarations share one."""
        return _SHARED.setdefault(encode((self.docs, self.next_number)), self)

    # Points.

    def point(self, data: Mapping[str, Any], string_bytes_max: int) -> dict[int, Any]:
        """Return the coerced values of a report by number. Raises `Invalid` naming the attribute at fault."""
        point: dict[int, Any] = {}
        types = self._types
        for name, value in data.items():
            declared = types.get(name)
            if declared is None:
                raise Invalid(self._undeclared(name))
            number, coerce, plain, _ = declared
            if type(value) in plain and -_LARGEST <= value <= _LARGEST:
                point[number] = value  # the fast path of nearly all values
                continue
            stored = point[number] = coerce(name, value)
            if type(stored) is str and len(stored) * 4 > string_bytes_max:
                size = len(stored.encode())
                if size > string_bytes_max:
                    raise Invalid(
                        f"data.{name}: the text has {size} bytes; a value takes at most {string_bytes_max}."
                    )
        if not point:
            raise Invalid("data: is empty; report at least one declared attribute.")
        return point

    def without_unknown(self, reports: list[StateReport]) -> tuple[list[StateReport], set[str], set[str]]:
        """Return the reports without what is not declared or null; some names of both. Empty ones are left out."""
        types, undeclared, empty = self._types, set[str](), set[str]()
        kept: list[StateReport] = []
        for report in reports:
            given = report.data
            if given and None not in given.values() and given.keys() <= types.keys():
                kept.append(report)
                continue
            if len(undeclared) < NAMES_TOLD_MAX:
                undeclared |= given.keys() - types.keys()
            data: dict[str, Any] = {}
            for name in given if len(given) < len(types) else types:
                if name in types and name in given:
                    if given[name] is None:
                        empty.add(name)
                    else:
                        data[name] = given[name]
            if data:
                kept.append(msgspec.structs.replace(report, data=data))
        return kept, undeclared, empty

    def declared(self, name: str) -> tuple[int, str]:
        """Return the number and the data type of an attribute. Raises `Invalid`."""
        declared = self._types.get(name)
        if declared is None:
            raise Invalid(self._undeclared(name))
        return declared[0], declared[3]

    def _undeclared(self, name: str) -> str:
        declared = ", ".join(list(self._types)[:10]) or "none"
        return (
            f"data.{name[:255]}: the device declares no such attribute (declared: {declared}). "
            "Declare it first, or correct the name."
        )

    def entry(self, time_ms: int, point: Mapping[int, Any]) -> dict[str, Any]:
        """Return a stored point as the caller sees it: the values of currently declared attributes, by name."""
        names = self.names
        entry: dict[str, Any] = {
            "time": iso(time_ms),
            "data": {names[number]: value for number, value in point.items() if number in names},
        }
        if META in point:
            entry["meta"] = point[META]
        if FLOW_VERSION in point:
            entry["flowVersion"] = point[FLOW_VERSION]
        return entry

    # Declarations.

    def find(self, name: str) -> dict[str, Any]:
        """Return the document of the attribute `name`. Raises `NotFound` if it is not declared."""
        for doc in self.docs:
            if doc["name"] == name:
                return doc
        raise NotFound(f"The device declares no attribute {name}.")

    def number(self, name: str) -> int | None:
        """Return the number of the attribute `name`, None if it is not declared."""
        declared = self._types.get(name)
        return None if declared is None else declared[0]

    def added(self, attribute: Attribute) -> Attributes:
        """Return the attributes with one more. Raises `Invalid`."""
        if attribute.name in self._types:
            raise Invalid(f"name: the device already declares an attribute {attribute.name}.")
        if len(self.docs) >= ATTRIBUTES_MAX:
            raise Invalid(
                f"name: the device already declares {ATTRIBUTES_MAX} attributes, which is the limit."
            )
        return Attributes([*self.docs, {"n": self.next_number, **_plain(attribute)}], self.next_number + 1)

    def replaced(self, attributes: list[Attribute]) -> Attributes:
        """Return exactly `attributes`. Those that are declared already keep their numbers, values and types."""
        docs: list[dict[str, Any]] = []
        seen: set[str] = set()
        fresh = self.next_number
        for position, attribute in enumerate(attributes):
            if attribute.name in seen:
                raise Invalid(f"attributes[{position}].name: {attribute.name} appears twice in the list.")
            seen.add(attribute.name)
            number = self.number(attribute.name)
            if number is None:
                number, fresh = fresh, fresh + 1
            else:
                old = self.find(attribute.name)["dataType"]
                if old != attribute.data_type:
                    raise Invalid(
                        f"attributes[{position}].dataType: {attribute.name} is declared as {old} and stays so; "
                        "delete the attribute first to declare it again."
                    )
            docs.append({"n": number, **_plain(attribute)})
        return Attributes(docs, fresh)

    def patched(self, name: str, patch: AttributePatch) -> tuple[Attributes, str]:
        """Return the attributes with a change of the attribute `name`, and its name after the change."""
        old = self.find(name)
        changes = _plain(patch)
        renamed = changes.get("name", name)
        if renamed != name and renamed in self._types:
            raise Invalid(f"name: the device already declares an attribute {renamed}.")
        docs = [{**doc, **changes} if doc is old else doc for doc in self.docs]
        return Attributes(docs, self.next_number), renamed

    def removed(self, name: str) -> Attributes:
        """Return the attributes without the attribute `name`."""
        gone = self.find(name)
        return Attributes([doc for doc in self.docs if doc is not gone], self.next_number)


_SHARED: WeakValueDictionary[bytes, Attributes] = WeakValueDictionary()
"""The instances that active devices use, by their encoded declarations."""


def shown_attribute(doc: Mapping[str, Any]) -> dict[str, Any]:
    """Return an attribute's document as the caller sees it."""
    return {key: value for key, value in doc.items() if key != "n"}


def _plain(struct: Attribute | AttributePatch) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain
