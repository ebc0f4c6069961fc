"""The topics of devices: `losant/ID/state`, `losant/ID/command`, the same with `trunkline` in front, and
`trunkline/ID/rows` and `trunkline/ID/columns`.

Owns which topics there are, how the payload of states is read, and the payload of a command. Does not own who may use
them, nor what a device does with a state. Rows and columns are read as the frames of the device link that they would be
with a kind and a number in front (`link/frames.py`).
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import msgspec

from trunkline.actors.core.values import cbor
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.invalid_input import invalid
from trunkline.actors.core.values.plain_json import check_json
from trunkline.actors.core.values.terms import TOPICS_OF_DEVICES
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand
from trunkline.actors.fleet.devices.record.messages import StateOrStates, StateReport
from trunkline.actors.fleet.devices.state.link_messages import Columns
from trunkline.http.calls.json_body import decode
from trunkline.http.link.frames import Malformed, States, decode_frame

STATE: Final = "state"
ROWS: Final = "rows"
COLUMNS: Final = "columns"
REPORTS: Final = (STATE, ROWS, COLUMNS)
"""The topics in which devices report."""
COMMAND: Final = "command"
CBOR: Final = "application/cbor"
"""The content type of MQTT 5 with which a payload is CBOR; without one, and with any other, it is JSON."""

_TOPIC: Final = re.compile(r"(losant|trunkline)/([0-9A-Fa-f]{24})/(state|command|rows|columns)")
_COMMANDS: Final = re.compile(r"(losant|trunkline)/([0-9A-Fa-f]{24}|\+)/(command|\+|#)")
_decoder: Final = msgspec.json.Decoder(StateOrStates)
_SCALARS: Final = frozenset({int, float, bool, str, type(None)})


class DeviceTopic(NamedTuple):
    """A topic of a device: its first level, the device, and what it is about."""

    prefix: str
    device: bytes
    about: str


def is_reserved(topic: str) -> bool:
    """Whether a topic or a filter is one of devices, and none of the application."""
    return topic.startswith(TOPICS_OF_DEVICES)


def device_topic(topic: str) -> DeviceTopic | None:
    """The parts of a topic of a device; None for any other."""
    found = _TOPIC.fullmatch(topic)
    if found is None or (found[3] in _KINDS and found[1] != "trunkline"):
        return None
    return DeviceTopic(found[1], bytes.fromhex(found[2]), found[3])


def commands_of(filter: str) -> tuple[str, str | None] | None:
    """Of a filter that selects commands: the first level of the topics, and the id of the device as the filter has it,
    None for each device.

    None for a filter that selects no commands.
    """
    found = _COMMANDS.fullmatch(filter)
    if found is None:
        return None
    return found[1], None if found[2] == "+" else found[2]


def states_of(payload: bytes, content_type: str) -> Any:
    """The state, or the array of states, in a payload. Raises `Invalid`."""
    if not content_type or content_type.partition(";")[0].strip().lower() != CBOR:
        return decode(_decoder, payload)
    try:
        given = cbor.decode_item(payload)
    except cbor.NotOneItem as problem:
        raise Invalid(f"The body is not CBOR: {problem}.") from None
    try:
        states = msgspec.convert(given, StateOrStates)
    except msgspec.ValidationError as error:
        check_json(given, levels_max=cbor.DEPTH_MAX)
        raise invalid(error, "body", StateOrStates, given) from None
    if not all(map(_has_scalars_only, states if isinstance(states, list) else (states,))):
        check_json(given, levels_max=cbor.DEPTH_MAX)
    return states


def _has_scalars_only(report: StateReport) -> bool:
    """Whether a state is of the usual form. Of its numbers the device says which are finite."""
    return report.meta is msgspec.UNSET and _SCALARS.issuperset(map(type, report.data.values()))


_FORMS: Final = {ROWS: "[[name...], [[time, value...]...]]", COLUMNS: "[time, deltas, {name: column}]"}
_KINDS: Final = {ROWS: 2, COLUMNS: 3}
_CBOR_ARRAYS: Final = range(0x80, 0x96)
"""The first bytes of arrays in CBOR whose length is in them, also with two elements more."""


def columns_in(about: str, payload: bytes) -> Columns:
    """The states in a payload of rows or columns, in JSON or in CBOR, which the first byte tells. Raises `Invalid`."""
    kind, text = _KINDS[about], payload.lstrip()[:1] == b"["
    try:
        if text:
            frame = b"[%d,1,%b" % (kind, payload.lstrip()[1:])
        elif payload and payload[0] in _CBOR_ARRAYS:
            frame = bytes((payload[0] + 2, kind, 1)) + payload[1:]
        else:
            raise Malformed("the payload must be an array, in JSON or in CBOR")
        states = decode_frame(frame, text=text)
        assert isinstance(states, States)
        assert isinstance(states.body, Columns)
        if states.device is not None or states.backlog:
            raise Malformed("options: may have flowVersion only; the topic names the device")
    except Malformed as problem:
        raise Invalid(
            f"A payload of {about} is {_FORMS[about]}, a frame of the device link without its kind and number: "
            f"{problem}."
        ) from None
    return states.body


def command_topic(prefix: str, device: str) -> str:
    """The topic of the commands of a device."""
    return f"{prefix}/{device}/{COMMAND}"


def command_payload(command: LinkCommand) -> bytes:
    """The payload of a command: its name, its payload if it has one, and its time."""
    told: dict[str, Any] = {"name": command.name}
    if command.payload is not msgspec.UNSET:
        told["payload"] = command.payload
    told["time"] = {"$date": iso(command.time_ms)}
    return msgspec.json.encode(told)
