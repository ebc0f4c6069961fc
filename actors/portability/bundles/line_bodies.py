"""The body of a line of a bundle before it is imported: its form, its secrets, and what it names that is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from trunkline.actors.core.records import records
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.fleet.devices.record.kind import GATEWAYS
from trunkline.actors.portability.bundles.portable import BY_NAME
from trunkline.store import keys
from trunkline.store.codec import decode

if TYPE_CHECKING:
    from trunkline.actors.core.records.kind import Doc, Kind
    from trunkline.actors.core.records.portable import Get, Portable, ResourceName


def decode_body(portable: Portable, body: Doc, more: Doc) -> tuple[Any, Any]:
    """Both parts of a line as their types. Raises `Invalid`."""
    try:
        # By way of JSON, so that exactly what the API takes is taken.
        return (
            msgspec.json.decode(msgspec.json.encode(body), type=portable.body),
            msgspec.json.decode(msgspec.json.encode(more), type=portable.more),
        )
    except msgspec.ValidationError as error:
        raise Invalid(f"{error}.") from None


def put_secrets(body: Doc, removed: list[str], secret: str, *, keep: bool) -> None:
    """Put `secret`, a text that nobody knows, in the place of each secret that the export has removed.

    `keep`: the record exists, and what is left out of an object keeps its secret: a field, or a whole list of objects
    with secrets. `Item.patch` leaves out the fields of the body itself, which may be required. Raises `Invalid` for a
    wrong path.
    """
    left_out: dict[tuple[int, str], Doc] = {}
    for path in removed:
        holder: Any = body
        list_field: tuple[Doc, str] | None = None
        *steps, last = path.split(".")
        try:
            for step in steps:
                if isinstance(holder, list):
                    holder = holder[int(step)]
                else:
                    if list_field is None and isinstance(holder[step], list):
                        list_field = (holder, step)
                    holder = holder[step]
            if not isinstance(holder[last], str):
                raise TypeError
        except (KeyError, IndexError, TypeError, ValueError):
            raise Invalid(f"more.removed: the body has no text at {path[:100]}.") from None
        if keep and steps:
            owner, name = list_field or (holder, last)
            left_out[id(owner), name] = owner
        else:
            holder[last] = secret
    for (_, name), owner in left_out.items():
        del owner[name]


def drop_missing(
    resource: ResourceName, body: Doc, application: bytes, known: Callable[[str], bool], get: Get
) -> None:
    """Leave out references to records that are neither in the bundle (`known`) nor in the target."""
    portable = BY_NAME[resource]

    def exists(name: str, kind: Kind, id: Any) -> bool:
        if not isinstance(id, str) or len(id) != 2 * keys.ID_BYTES or known(id.lower()):
            return True  # also what is no id: the check of the body says so
        try:
            raw = records.raw_of(get, kind, application, bytes.fromhex(id))
        except ValueError:
            return True
        return raw is not None and _fits(name, decode(raw))

    for name, kind in portable.references.items():
        value = body.get(name)
        if isinstance(value, list):
            body[name] = [each for each in value if exists(name, kind, each)]
        elif value is not None and not exists(name, kind, value):
            del body[name]
            if name == "gatewayId" and body.get("deviceClass") == "peripheral":
                body["deviceClass"] = "standalone"
    for name, kind in portable.named.items():
        text = body.get(name)
        if (
            isinstance(text, str)
            and get(keys.UNIQUE, keys.unique_key(kind.name, application, "name", text)) is None
        ):
            del body[name]


def _fits(name: str, doc: Doc) -> bool:
    if name == "gatewayId":
        return doc["deviceClass"] in GATEWAYS
    if name == "parentId" and "deviceClass" in doc:
        return bool(doc["deviceClass"] == "system")
    return True
