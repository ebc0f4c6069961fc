"""DeviceChangeStateNode: reports a state, or several, of a device.

`deviceId` is a template, or a path if `deviceIdTemplateType` is `jsonPath`. The values come from `attrInfos`
(`individualFields`: what is blank is not reported), from the JSON of `attrJsonTemplate` (`jsonTemplate`), or from
`attrPayloadPath` (`payloadPath`). The latter two give the values by attribute, a whole state with `data`, and `time` if
it has its own, or an array of these. States without a time have that of the payload, of now, or of `timeSourcePath`.
`metaTemplate` and `flowVersionTemplate` are for states without a `meta` and a `flowVersion`.

Values of attributes that the device does not declare are ignored, and so are nulls and blank fields; the record of the
run says so. If nothing is left, nothing is reported. As in the API, a state with another value that does not fit its
attribute is refused as a whole. `resultPath` gets `{"success": true}` or the error; without it an error fails the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from trunkline.actors.core.formulas.paths import compile_path
from trunkline.actors.core.formulas.price import computed, spend
from trunkline.actors.core.formulas.values import UNDEFINED
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.engine.bodies import BULK_VALUES_MAX, body_of, id_of, json_reader, with_error
from trunkline.actors.engine.node_rights import may_write
from trunkline.actors.engine.node_type import Form
from trunkline.actors.engine.settings import (
    RESULT,
    VALUE,
    ChoiceSetting,
    Config,
    LongTemplateSetting,
    MixedSetting,
    PathSetting,
    RowsSetting,
    Setting,
    TemplateSetting,
)
from trunkline.actors.engine.tools import (
    choice_of,
    list_of,
    needed_path,
    needed_template,
    needed_text_reader,
    path_of,
    shortened,
    template_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.fleet.devices.record.messages import SendKnownState, StateOrStates

TYPE: Final = "DeviceChangeStateNode"

_DEVICE_ID: Final = MixedSetting("deviceId", is_needed=True)
_DEVICE_ID_TYPE: Final = ChoiceSetting("deviceIdTemplateType", "stringTemplate", "jsonPath")
_KEY: Final = TemplateSetting("key", is_needed=True)
_ATTR_INFOS: Final = RowsSetting("attrInfos", _KEY, VALUE)
_ATTR_JSON: Final = LongTemplateSetting("attrJsonTemplate")
_ATTR_PAYLOAD_PATH: Final = PathSetting("attrPayloadPath")
_FIELDS: Final = {
    "individualFields": _ATTR_INFOS,
    "jsonTemplate": _ATTR_JSON,
    "payloadPath": _ATTR_PAYLOAD_PATH,
}
_ATTR_DATA_METHOD: Final = ChoiceSetting("attrDataMethod", *_FIELDS)
_TIME_SOURCE_TYPE: Final = ChoiceSetting("timeSourceType", "payloadTime", "now", "payloadPath")
_TIME_SOURCE_PATH: Final = PathSetting("timeSourcePath")
_META: Final = MixedSetting("metaTemplate")
_META_TYPE: Final = ChoiceSetting("metaTemplateType", "stringTemplate", "jsonTemplate", "jsonPath")
_FLOW_VERSION: Final = TemplateSetting("flowVersionTemplate")
FORM: Final = Form(
    "output",
    (
        _DEVICE_ID,
        _DEVICE_ID_TYPE,
        _ATTR_DATA_METHOD,
        _ATTR_INFOS,
        _ATTR_JSON,
        _ATTR_PAYLOAD_PATH,
        _TIME_SOURCE_TYPE,
        _TIME_SOURCE_PATH,
        _META,
        _META_TYPE,
        _FLOW_VERSION,
        RESULT,
    ),
)
NEEDS: Final = (may_write("device.sendState"),)

VALUES_OF_STATE_MAX: Final = 4_096
"""Values of one state, with those that the device does not declare."""
NAMES_NOTED_MAX: Final = 20
"""Names of attributes that one visit notes."""

_Read = Callable[[Visit], Any]
_PAYLOAD_TIME: Final = compile_path("time")


def prepare(config: Config) -> NodeStep:
    device, values, more = _device(config), _values(config), _more(config)
    result = path_of(config, RESULT)

    async def send(visit: Visit) -> Any:
        id = id_of(device(visit), "deviceId")
        given, shared = values(visit), more(visit)
        states = computed(_states, given, shared) if isinstance(given, list) else _state(given, shared)
        body = body_of(StateOrStates, states, _field(config), BULK_VALUES_MAX)
        for each in body if isinstance(body, list) else [body]:
            if len(each.data) > VALUES_OF_STATE_MAX:
                raise refused(
                    f"config.{_field(config)}: gives a state of {len(each.data)} values; at most "
                    f"{VALUES_OF_STATE_MAX} are looked at. Give those of attributes that the device declares."
                )
        ref = Ref("device", visit.world.application, id)
        if not any(each.data for each in (body if isinstance(body, list) else [body])):
            visit.note(f"config.{_field(config)}: gives no values, so nothing is reported.")
            return {"success": True}
        undeclared, empty = await visit.ask(ref, SendKnownState(body=body, origin=visit.world.origin))
        for name in undeclared[:NAMES_NOTED_MAX]:
            visit.note(f"{name}: the device declares no such attribute, so its values are ignored.")
        for name in empty[:NAMES_NOTED_MAX]:
            visit.note(f"{name}: is null, which is not a value, so it is not reported.")
        return {"success": True}

    return lambda visit: with_error(visit, result, send(visit))


def _field(config: Config) -> Setting:
    """The field with the values."""
    return _FIELDS[_method(config)]


def _method(config: Config) -> str:
    return choice_of(config, _ATTR_DATA_METHOD)


def _device(config: Config) -> _Read:
    if choice_of(config, _DEVICE_ID_TYPE) == "jsonPath":
        path = needed_path(config, _DEVICE_ID)
        return lambda visit: path.get(visit.payload)
    return needed_text_reader(config, _DEVICE_ID)


def _values(config: Config) -> _Read:
    """Reads the values by attribute, whole states, or an array of these."""
    method = _method(config)
    if method == "jsonTemplate":
        return json_reader(config, _ATTR_JSON)
    if method == "payloadPath":
        path = needed_path(config, _ATTR_PAYLOAD_PATH)
        return lambda visit: path.get(visit.payload)
    fields = [
        (needed_text_reader(each, _KEY), needed_template(each, VALUE))
        for each in list_of(config, _ATTR_INFOS)
        if each[VALUE] not in (None, "")
    ]

    def read(visit: Visit) -> dict[str, Any]:
        # A bare reference keeps the type of the value.
        values = {
            name(visit).strip(): template.value(visit.payload, visit.run.now_ms) for name, template in fields
        }
        given = {name: value for name, value in values.items() if value not in (UNDEFINED, None, "")}
        if len(given) < len(values):
            for name in [name for name in values if name not in given][:NAMES_NOTED_MAX]:
                visit.note(f"config.attrInfos: the value of {name} is blank, so it is not reported.")
        return given

    return read


def _states(given: list[Any], shared: dict[str, Any]) -> list[dict[str, Any]]:
    states = []
    for each in given:
        spend(1)
        states.append(_state(each, shared))
    return states


def _state(given: Any, more: dict[str, Any]) -> dict[str, Any]:
    """A state: what is given, or its `data`."""
    if not isinstance(given, dict):
        raise refused(
            f"config.attrDataMethod: gives {shortened(given)}, not an object of values by attribute."
        )
    whole = given if isinstance(given.get("data"), dict) else {"data": given}
    return {**more, **whole}


def _more(config: Config) -> Callable[[Visit], dict[str, Any]]:
    """Reads the fields of states that have none of their own: `time`, `meta` and `flowVersion`."""
    time, meta, version = _time(config), _meta(config), text_reader(config, _FLOW_VERSION)

    def read(visit: Visit) -> dict[str, Any]:
        fields = {"time": time(visit), "meta": meta(visit), "flowVersion": version(visit) or UNDEFINED}
        return {name: value for name, value in fields.items() if value is not UNDEFINED}

    return read


def _time(config: Config) -> _Read:
    kind = choice_of(config, _TIME_SOURCE_TYPE)
    if kind == "now":
        return lambda _visit: UNDEFINED
    if kind == "payloadTime":
        return lambda visit: _PAYLOAD_TIME.get(visit.payload)
    path = needed_path(config, _TIME_SOURCE_PATH)

    def read(visit: Visit) -> Any:
        time = path.get(visit.payload)
        if time is UNDEFINED or time is None:
            raise refused("config.timeSourcePath: leads to nothing, so the state has no time.")
        return time

    return read


def _meta(config: Config) -> _Read:
    kind = choice_of(config, _META_TYPE)
    template = template_of(config, _META)
    if template is None:
        return lambda _visit: UNDEFINED
    if kind == "jsonPath":
        path = needed_path(config, _META)
        return lambda visit: path.get(visit.payload)
    if kind == "jsonTemplate":
        return json_reader(config, _META)
    return lambda visit: template.value(visit.payload, visit.run.now_ms)
