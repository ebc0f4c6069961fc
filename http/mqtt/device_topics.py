"""The topics of devices: `losant/ID/state`, `losant/ID/command`, and the same with `trunkline` in front.

Owns which topics there are, how the payload of a state is read, and the payload of a command. Does not own who may use
them, nor what a device does with a state.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import cbor2
import msgspec

from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.timestamps import iso
from trunkline.actors.data.topics.filters import OF_DEVICES
from trunkline.actors.fleet.devices.commands.command_messages import LinkCommand
from trunkline.actors.fleet.devices.record.messages import StateOrStates
from trunkline.http.calls.json_body import decode

STATE: Final = "state"
COMMAND: Final = "command"
CBOR: Final = "application/cbor"
"""The content type of MQTT 5 with which a payload is CBOR; without one, and with any other, it is JSON."""

_TOPIC: Final = re.compile(r"(losant|trunkline)/([0-9A-Fa-f]{24})/(state|command)")
_COMMANDS: Final = re.compile(r"(losant|trunkline)/([0-9A-Fa-f]{24}|\+)/(command|\+|#)")
_decoder: Final = msgspec.json.Decoder(StateOrStates)


class DeviceTopic(NamedTuple):
    """A topic of a device: its first level, the device, and what it is about."""

    prefix: str
    device: bytes
    about: str


def is_reserved(topic: str) -> bool:
    """Whether a topic or a filter is one of devices, and none of the application."""
    return topic.startswith(OF_DEVICES)


def device_topic(topic: str) -> DeviceTopic | None:
    """The parts of a topic of a device; None for any other."""
    found = _TOPIC.fullmatch(topic)
    return None if found is None else DeviceTopic(found[1], bytes.fromhex(found[2]), found[3])


def commands_of(filter: str) -> tuple[str, bytes | None] | None:
    """Of a filter that selects commands: the first level of the topics, and the device, None for each.

    None for a filter that selects no commands.
    """
    found = _COMMANDS.fullmatch(filter)
    if found is None:
        return None
    return found[1], None if found[2] == "+" else bytes.fromhex(found[2])


def states_of(payload: bytes, content_type: str) -> Any:
    """The state, or the array of states, in a payload. Raises `Invalid`."""
    if not content_type or content_type.partition(";")[0].strip().lower() != CBOR:
        return decode(_decoder, payload)
    try:
        return msgspec.convert(cbor2.loads(payload), StateOrStates)
    except (cbor2.CBORError, ValueError, OverflowError, RecursionError, EOFError, TypeError) as error:
        raise Invalid(f"The payload is not a state, or an array of states, in CBOR: {error}.") from None
    except msgspec.ValidationError as error:
        raise Invalid(f"The payload is not a state: {error}.") from None


def command_topic(prefix: str, device: bytes) -> str:
    """The topic of the commands of a device."""
    return f"{prefix}/{device.hex()}/{COMMAND}"


def command_payload(command: LinkCommand) -> bytes:
    """The payload of a command: its name, its payload if it has one, and its time."""
    told: dict[str, Any] = {"name": command.name}
    if command.payload is not msgspec.UNSET:
        told["payload"] = command.payload
    told["time"] = {"$date": iso(command.time_ms)}
    return msgspec.json.encode(told)
