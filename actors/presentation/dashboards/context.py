"""The context of a dashboard: the values that a viewer gives to its parameters, checked and completed.

A value that is not given is the default of its parameter. Each value is checked against the type of its parameter;
what else the configuration demands is checked only where `validationEnabled` says so. A default that does not fit, as
the id of a device that was deleted, is no value: only the blocks that name its parameter cannot be read. Pure reads of
a snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from trunkline.actors.core.query.text import parse_query
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.fleet.devices.queries.selection import device_filter
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.fleet.devices.record.reads import tags_as_object
from trunkline.actors.people.accounts.reach import has_tag
from trunkline.actors.presentation.dashboards.checks import as_number, compile_pattern
from trunkline.actors.presentation.dashboards.holder import Holder, reaches
from trunkline.actors.presentation.dashboards.rights import Read
from trunkline.actors.presentation.experience.kind import USER as EXPERIENCE_USER
from trunkline.store.snapshot import Snapshot

Context = dict[str, Any]


class InvalidContext(Invalid):
    """The value of the parameter `name` does not fit. `ctx` are the values that were found before it."""

    def __init__(self, name: str, message: str, ctx: Context) -> None:
        super().__init__(f"ctx.{name}: {message}")
        self.name = name
        self.ctx = ctx


class Parameters(NamedTuple):
    """The values of the parameters of a dashboard. `unusable` says why the others have none."""

    values: Context
    unusable: Mapping[str, str]

    def check(self, block: Doc) -> None:
        """Raise `Invalid` if a block names a parameter that has no value."""
        if not self.unusable:
            return
        text = str(block)
        for name, problem in self.unusable.items():
            named = re.escape(name)
            if re.search(rf"'fromCtx': '{named}'|\bctx\W{{1,4}}{named}(?![\w$-])", text):
                raise Invalid(f"ctx.{name}: {problem} That is its default; give it another value.")


def resolve_context(
    snapshot: Snapshot,
    holder: Holder,
    doc: Doc,
    given: Mapping[str, Any],
    refused: Collection[tuple[bytes, str]] = (),
    *,
    refuses_defaults: bool = False,
) -> Parameters:
    """The value of each parameter of a dashboard. Values of other names are left out.

    `refused` are the applications of which the reader may not be shown what an operation reads. Raises `InvalidContext`
    for a value that is given, and also for a default if `refuses_defaults`.
    """
    found: Context = {}
    unusable: dict[str, str] = {}
    for parameter in doc["contextConfiguration"]:
        name = parameter["name"]
        scene = _Scene(snapshot, holder, parameter, refused)
        try:
            found[name] = scene.check(given.get(name, parameter["defaultValue"]))
        except Invalid as refusal:
            if name in given or refuses_defaults:
                raise InvalidContext(name, refusal.message, found) from None
            unusable[name] = refusal.message
    return Parameters(found, unusable)


class _Scene:
    """One parameter, and what its value is checked against."""

    def __init__(
        self, snapshot: Snapshot, holder: Holder, parameter: Doc, refused: Collection[tuple[bytes, str]]
    ) -> None:
        self.refused = refused
        self.snapshot = snapshot
        self.holder = holder
        self.config: Doc = parameter.get("validationConfig", {})
        self.default: Any = parameter["defaultValue"]
        self.enabled: bool = parameter.get("validationEnabled", False)
        self.type: str = parameter["type"]
        self.application_id: str | None = parameter.get("applicationId")

    def check(self, value: Any) -> Any:
        """The value as it is used. Raises `Invalid`."""
        return _CHECKS[self.type](self, value)

    def application(self, operation: Read) -> bytes:
        """The application whose records the value names, for what an operation reads."""
        if self.application_id is not None:
            id = bytes.fromhex(self.application_id)
        elif self.holder.kind == "application":
            id = self.holder.id
        else:
            raise Invalid("the parameter names no application; give its applicationId.")
        if not reaches(self.snapshot, self.holder, id):
            raise Invalid(f"the owner of the dashboard does not reach the application {id.hex()}.")
        if (id, operation) in self.refused:
            raise Invalid(f"the application {id.hex()} may not be shown here; that needs {operation}.")
        return id

    def record(self, kind: Kind, value: Any, operation: Read) -> Doc:
        """The record with this id, with its `id`."""
        text = _as_text(value)
        found = None
        if is_id(text):
            found = records.find(self.snapshot, kind, self.application(operation), bytes.fromhex(text))
        if found is None:
            raise Invalid(f"{text[:100]!r} is the id of no {kind.noun} of the application.")
        return found.doc | {"id": found.id.hex()}


def _attribute(scene: _Scene, value: Any) -> Any:
    text, allowed = _as_text(value), scene.config.get("attributes", [])
    if scene.enabled and allowed and text not in allowed:
        raise Invalid(f"{text[:100]!r} is not one of the attributes {', '.join(allowed)}.")
    return text


def _device(scene: _Scene, value: Any) -> Any:
    whole = scene.config.get("includeFullDevice", False)
    if not (scene.enabled or whole):
        return _as_text(value)
    device = scene.record(DEVICE, value, "device.get")
    if scene.enabled and not _is_chosen(scene, device):
        raise Invalid(f"the device {device['id']} is not one that the dashboard allows.")
    return _shown_device(device) if whole else device["id"]


def _is_chosen(scene: _Scene, device: Doc) -> bool:
    """Whether one of the choices of devices contains the device; without a choice all are allowed."""
    ids = [id.lower() for id in scene.config.get("deviceIds", [])]
    tags = scene.config.get("deviceTags", [])
    query = parse_query(scene.config.get("query") or "", "query")
    if not (ids or tags or query):
        return True
    if device["id"] in ids or has_tag(device["tags"], tags):
        return True
    if not query:
        return False
    match = device_filter(scene.snapshot, scene.application("device.get"), query).match
    return match is None or match(device)


def _shown_device(device: Doc) -> Doc:
    attributes = {}
    for attribute in device["attributes"]:
        shown = {"dataType": attribute["dataType"]}
        if attribute.get("description"):
            shown["description"] = attribute["description"]
        if attribute.get("tags"):
            shown["tags"] = attribute["tags"]
        attributes[attribute["name"]] = shown
    shown = {"id": device["id"], "name": device["name"]}
    if device.get("description"):
        shown["description"] = device["description"]
    return shown | {"tags": tags_as_object(device["tags"]), "attributes": attributes}


def _tag(scene: _Scene, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise Invalid('must be a tag, such as {"key": "room", "value": "kitchen"}.')
    allowed = scene.config.get("deviceTags", [])
    if scene.enabled and allowed:
        tag = {"key": value.get("key", ""), "value": value.get("value", "")}
        if not has_tag([tag], allowed):
            raise Invalid("is not one of the tags that the dashboard allows.")
    if not value and scene.default:
        raise Invalid('needs a key, a value, or both, such as {"key": "room", "value": "kitchen"}.')
    return dict(value)


def _number(scene: _Scene, value: Any) -> Any:
    number = as_number(value)
    low, high = scene.config.get("min"), scene.config.get("max")
    if scene.enabled and low is not None and number < low:
        raise Invalid(f"{number} is less than {low}.")
    if scene.enabled and high is not None and number > high:
        raise Invalid(f"{number} is greater than {high}.")
    return number


def _string(scene: _Scene, value: Any) -> Any:
    text, pattern = _as_text(value), scene.config.get("regExp")
    if scene.enabled and pattern and not compile_pattern(pattern, "regExp").search(text):
        raise Invalid(f"does not match the pattern {pattern[:100]}.")
    return text


def _experience_user(scene: _Scene, value: Any) -> Any:
    if not scene.enabled:
        return _as_text(value)
    user = scene.record(EXPERIENCE_USER, value, "experienceUser.get")
    groups = {id.lower() for id in scene.config.get("experienceGroupIds", [])}
    if groups and groups.isdisjoint(user.get("experienceGroupIds", [])):
        raise Invalid("is not a user in one of the groups that the dashboard allows.")
    return user["id"]


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Invalid("must be a text.")
    return value


_CHECKS: Final[Mapping[str, Callable[[_Scene, Any], Any]]] = {
    "deviceAttribute": _attribute,
    "deviceId": _device,
    "deviceTag": _tag,
    "number": _number,
    "string": _string,
    "experienceUser": _experience_user,
}
