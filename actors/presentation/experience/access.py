"""Who may use an endpoint: everybody, its users, the users of its groups, or those with access to a device.

A user belongs to the groups that the user's record names. With the access `device`, `deviceIdTemplate` gives the id of
a device for a request, and the device has to belong to a group of the user, or to one below it.
"""

from __future__ import annotations

from typing import Any, Literal

from trunkline.actors.core.formulas.errors import EvaluationError, FormulaError
from trunkline.actors.core.formulas.price import TakesLong, inline
from trunkline.actors.core.formulas.templates import compile_template
from trunkline.actors.core.formulas.values import UNDEFINED, to_text
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kind import Doc
from trunkline.actors.core.records.reading import Reading
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Message
from trunkline.actors.fleet.devices.queries.selection import device_filter
from trunkline.actors.fleet.devices.record.kind import DEVICE
from trunkline.actors.presentation.experience.content import looks_like_id
from trunkline.actors.presentation.experience.tokens import LoggedIn

Verdict = Literal["allowed", "unauthorized", "forbidden"]

_TEMPLATE_CHARS_MAX = 1024


class MayUseDevice(Message, frozen=True):
    """Whether a device belongs to a group or to one below it: to the group `id`, or to one of the user `id`."""

    application: bytes
    device: bytes
    id: bytes
    of: Literal["experienceUserId", "experienceGroupId"] = "experienceUserId"


def judge(endpoint: Doc, caller: LoggedIn | None) -> Verdict:
    """Whether a caller may use an endpoint, but for the device of a request."""
    if endpoint["access"] == "public":
        return "allowed"
    if caller is None:
        return "unauthorized"
    if endpoint["access"] != "group":
        return "allowed"
    is_member = not set(endpoint["experienceGroupIds"]).isdisjoint(caller.user.doc["experienceGroupIds"])
    return "allowed" if is_member else "forbidden"


def check_device_template(text: str) -> None:
    """Raise `Invalid` for a `deviceIdTemplate` that can give the id of no device, so that nobody could be let in."""
    if not text.strip():
        raise Invalid(
            "deviceIdTemplate: the access device needs it; give a template such as {{request.params.deviceId}}."
        )
    try:
        inline(compile_template, text, _TEMPLATE_CHARS_MAX)
    except FormulaError as error:
        raise Invalid(f"deviceIdTemplate: is not a template. {error}") from None
    except TakesLong:
        raise Invalid("deviceIdTemplate: takes too long to be read for each request; shorten it.") from None


def device_of(endpoint: Doc, context: Any) -> bytes | None:
    """The id that the template of an endpoint gives for a request; None if it gives none, or takes long for it."""
    try:
        text = endpoint.get("deviceIdTemplate") or ""
        template = inline(compile_template, text, _TEMPLATE_CHARS_MAX)
        value = inline(template.value, context)
    except (FormulaError, EvaluationError, TakesLong):
        return None
    text = "" if value is None or value is UNDEFINED else to_text(value).strip()
    return bytes.fromhex(text) if looks_like_id(text) else None


def may_use_device(reading: Reading, message: MayUseDevice) -> bool:
    """Whether the device belongs to the user or the group. The queries of groups may take long."""
    reading.check_time(is_long=True)
    found = records.find(reading.snapshot, DEVICE, message.application, message.device)
    query = {message.of: message.id.hex()}
    match = device_filter(reading.snapshot, message.application, query).match
    assert match is not None
    return found is not None and match({**found.doc, "id": message.device.hex()})
