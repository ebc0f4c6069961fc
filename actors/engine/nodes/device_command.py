"""DeviceSendCommandNode: sends a command to devices.

The devices are those of `deviceIdsPath`, which leads to an id or to an array of ids; or those of `sendToDeviceIds` and
`sendToDeviceTags` together; or those of the query `deviceQueryJsonTemplate`: the first of these that is set. The name
is `nameTemplate`. The payload is the JSON of `payloadTemplate`, or by `payloadTemplateType` its text (`string`) or what
stands at a path (`path`). The command expires after as many seconds as `ttlSecondsTemplate` gives. If a device refuses
the command, the others still get it, and the run fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.errors import DomainError
from trunkline.actors.engine.bodies import body_of, query_reader, value_reader
from trunkline.actors.engine.device_choice import ids_and_tags, ids_at_path
from trunkline.actors.engine.many import ask_many
from trunkline.actors.engine.node_rights import may_write
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    TAG,
    ChoiceSetting,
    Config,
    LongMixedSetting,
    LongTemplateSetting,
    NumberSetting,
    PathSetting,
    RowsSetting,
    TemplateSetting,
    TextsSetting,
)
from trunkline.actors.engine.tools import (
    Unusable,
    needed_text_reader,
    number_reader,
    text_of,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.fleet.devices.actor.commands import command_for_many
from trunkline.actors.fleet.devices.record.messages import CommandPost, CommandToMany
from trunkline.actors.fleet.devices.record.read_messages import SelectDevices

TYPE: Final = "DeviceSendCommandNode"

_NAME: Final = TemplateSetting("nameTemplate", is_needed=True)
_PAYLOAD: Final = LongMixedSetting("payloadTemplate")
_PAYLOAD_TYPE: Final = ChoiceSetting("payloadTemplateType", "json", "string", "path")
_SEND_TO_DEVICE_IDS: Final = TextsSetting("sendToDeviceIds")
_SEND_TO_DEVICE_TAGS: Final = RowsSetting("sendToDeviceTags", *TAG)
_DEVICE_IDS_PATH: Final = PathSetting("deviceIdsPath")
_DEVICE_QUERY_JSON: Final = LongTemplateSetting("deviceQueryJsonTemplate")
_TTL_SECONDS: Final = NumberSetting("ttlSecondsTemplate")
FORM: Final = Form(
    "output",
    (
        _NAME,
        _PAYLOAD,
        _PAYLOAD_TYPE,
        _SEND_TO_DEVICE_IDS,
        _SEND_TO_DEVICE_TAGS,
        _DEVICE_IDS_PATH,
        _DEVICE_QUERY_JSON,
        _TTL_SECONDS,
    ),
)
NEEDS: Final = (may_write("device.sendCommand"),)


_Choice = Callable[[Visit], Awaitable[list[bytes]]]


def prepare(config: Config) -> NodeStep:
    choose, name, payload, ttl = (
        _choice(config),
        needed_text_reader(config, _NAME),
        value_reader(config, _PAYLOAD, _PAYLOAD_TYPE),
        number_reader(config, _TTL_SECONDS),
    )

    async def step(visit: Visit) -> int:
        fields = {"name": name(visit), "payload": payload(visit)}
        if ttl is not None:
            seconds = ttl(visit)
            if not float(seconds).is_integer():
                raise refused(f"config.ttlSecondsTemplate: gives {seconds:g}; give whole seconds.")
            fields["ttlSeconds"] = int(seconds)
        given = {key: value for key, value in fields.items() if value is not UNDEFINED}
        message = command_for_many(body_of(CommandPost, given, "nameTemplate, ttlSecondsTemplate"))
        application = visit.world.application
        refs = [Ref("device", application, id) for id in await choose(visit)]
        for answer in await ask_many(visit, refs, message):
            if isinstance(answer, DomainError):
                raise answer
        return 0

    return step


def _choice(config: Config) -> _Choice:
    if text_of(config, _DEVICE_IDS_PATH):
        ids = ids_at_path(config, _DEVICE_IDS_PATH)

        async def choose(visit: Visit) -> list[bytes]:
            return [bytes.fromhex(id) for id in ids(visit)["deviceIds"]]

        return choose
    if config[_SEND_TO_DEVICE_IDS] or config[_SEND_TO_DEVICE_TAGS]:
        named = ids_and_tags(config, _SEND_TO_DEVICE_IDS, _SEND_TO_DEVICE_TAGS)
        return lambda visit: _selected(visit, named(visit), "sendToDeviceTags")
    if not text_of(config, _DEVICE_QUERY_JSON):
        raise Unusable(
            "config.deviceIdsPath, sendToDeviceIds, sendToDeviceTags or deviceQueryJsonTemplate: "
            "name the devices by one of them."
        )
    query = query_reader(config, _DEVICE_QUERY_JSON, empty_is_all=False)
    return lambda visit: _selected(visit, {"deviceQuery": query(visit)}, "deviceQueryJsonTemplate")


async def _selected(visit: Visit, choice: dict[str, Any], field: str) -> list[bytes]:
    if not any(choice.values()) and "deviceQuery" not in choice:
        return []
    body = body_of(CommandToMany, {"name": "any", **choice}, field)
    found: list[bytes] = await visit.read(
        SelectDevices(application=visit.world.application, body=body, reach=None)
    )
    return found
