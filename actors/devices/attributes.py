"""The declared attributes of a device: names, types, and the small numbers that stand for them on disk.

Names are interned: a stored point carries the number of an attribute and not its name, so a point costs
tens of bytes. A number is never used twice on a device; the values of an attribute that was taken away and
declared anew therefore stay apart.

An `Attributes` is immutable; changing the declaration makes a new one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from trunkline.actors.devices.coercion import COERCE
from trunkline.actors.devices.messages import AttributePatch
from trunkline.actors.devices.terms import Attribute
from trunkline.actors.values.errors import Invalid, NotFound
from trunkline.actors.values.timestamps import iso
from trunkline.store.codec import encode

ATTRIBUTES_MAX = 256
"""The API's bound; the message types carry the same number for whole lists."""

_PLAIN: dict[str, frozenset[type]] = {"number": frozenset({int, float}), "boolean": frozenset({bool})}
"""Types whose values are stored as they are, if they are not larger than a double can hold."""

_LARGEST = sys.float_info.max

META = -1
FLOW_VERSION = -2
"""Numbers below zero in a stored point are not attributes."""


class Attributes:
    """The attributes as documents `{"n": number, "name", "dataType", ...}`, and both ways between the two."""

    __slots__ = ("__weakref__", "_types", "docs", "following", "names")

    def __init__(self, docs: list[dict[str, Any]], following: int) -> None:
        self.docs = docs
        self.following = following
        """The number that the next new attribute gets. Stored with the documents."""
        self.names: dict[int, str] = {doc["n"]: doc["name"] for doc in docs}
        self._types = {
            doc["name"]: (doc["n"], COERCE[doc["dataType"]], _PLAIN.get(doc["dataType"], frozenset()))
            for doc in docs
        }

    def shared(self) -> Attributes:
        """The one in memory that is equal to this: the devices of a fleet declare the same, and keep one."""
        return _SHARED.setdefault(encode((self.docs, self.following)), self)

    # Points.

    def point(self, data: Mapping[str, Any], string_bytes_max: int) -> dict[int, Any]:
        """The values of a report by number, coerced. Raises `Invalid` naming the attribute at fault."""
        point: dict[int, Any] = {}
        types = self._types
        for name, value in data.items():
            declared = types.get(name)
            if declared is None:
                raise Invalid(self._undeclared(name))
            number, coerce, plain = declared
            if type(value) in plain and -_LARGEST <= value <= _LARGEST:
                point[number] = value  # nearly each value of nearly each report
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

    def _undeclared(self, name: str) -> str:
        declared = ", ".join(list(self._types)[:10]) or "none"
        return (
            f"data.{name[:255]}: the device declares no such attribute (declared: {declared}). "
            "Declare it first, or correct the name."
        )

    def entry(self, time_ms: int, point: Mapping[int, Any]) -> dict[str, Any]:
        """A stored point as the caller sees it: what is declared now, by name."""
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
        """The document of the attribute `name`; `NotFound` where it is not declared."""
        for doc in self.docs:
            if doc["name"] == name:
                return doc
        raise NotFound(f"The device declares no attribute {name}.")

    def number(self, name: str) -> int | None:
        """The number of the attribute `name`, None where it is not declared."""
        declared = self._types.get(name)
        return None if declared is None else declared[0]

    def added(self, attribute: Attribute) -> Attributes:
        """With one more attribute."""
        if attribute.name in self._types:
            raise Invalid(f"name: the device already declares an attribute {attribute.name}.")
        if len(self.docs) >= ATTRIBUTES_MAX:
            raise Invalid(
                f"name: the device already declares {ATTRIBUTES_MAX} attributes, which is the bound."
            )
        return Attributes([*self.docs, {"n": self.following, **_plain(attribute)}], self.following + 1)

    def replaced(self, attributes: list[Attribute]) -> Attributes:
        """With exactly `attributes`. One that is declared already keeps its number, its values and its type."""
        docs: list[dict[str, Any]] = []
        seen: set[str] = set()
        fresh = self.following
        for position, attribute in enumerate(attributes):
            if attribute.name in seen:
                raise Invalid(f"attributes[{position}].name: {attribute.name} stands in the list twice.")
            seen.add(attribute.name)
            number = self.number(attribute.name)
            if number is None:
                number, fresh = fresh, fresh + 1
            else:
                old = self.find(attribute.name)["dataType"]
                if old != attribute.data_type:
                    raise Invalid(
                        f"attributes[{position}].dataType: {attribute.name} is declared as {old} and stays so; "
                        "delete the attribute first to declare it anew."
                    )
            docs.append({"n": number, **_plain(attribute)})
        return Attributes(docs, fresh)

    def patched(self, name: str, patch: AttributePatch) -> tuple[Attributes, str]:
        """With the attribute `name` changed; also its name after the change."""
        old = self.find(name)
        changes = _plain(patch)
        renamed = changes.get("name", name)
        if renamed != name and renamed in self._types:
            raise Invalid(f"name: the device already declares an attribute {renamed}.")
        docs = [{**doc, **changes} if doc is old else doc for doc in self.docs]
        return Attributes(docs, self.following), renamed

    def removed(self, name: str) -> Attributes:
        """Without the attribute `name`."""
        gone = self.find(name)
        return Attributes([doc for doc in self.docs if doc is not gone], self.following)


_SHARED: WeakValueDictionary[bytes, Attributes] = WeakValueDictionary()
"""Those that active devices hold, by what they declare. It goes with the last of these devices."""


def shown_attribute(doc: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute's document as the caller sees it."""
    return {key: value for key, value in doc.items() if key != "n"}


def _plain(struct: Attribute | AttributePatch) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(struct)
    return plain
