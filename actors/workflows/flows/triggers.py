"""The triggers of workflows: for each type the fields of its `config` and of its `meta`, the classes of workflows in
which it is valid, and what an author must be allowed to read for it.

`config` and `meta` are closed: a field that a type does not have is refused, so a misspelt one is found when the
workflow is saved. Everything else of a trigger is stored as it was sent. What `key` names (a device, an endpoint, a
table) need not exist: a workflow that was made elsewhere names what will be made here later.

The module is long because there are many types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.terms import TOPIC_FILTER_FORM, TOPIC_FILTER_PATTERN, Description, Key, Name

Text = Annotated[str, Meta(max_length=1024)]
_Short = Annotated[str, Meta(max_length=255)]
_Word = Annotated[str, Meta(max_length=48)]
_Output = Annotated[list[Annotated[str, Meta(min_length=1, max_length=48)]], Meta(max_length=100)]
OutputIds = Annotated[list[_Output], Meta(max_length=100)]
"""For each output of a node the ids of the nodes that it leads to."""

_Number = int | float
_Flag = bool | UnsetType
_Keys = Annotated[list[Key], Meta(max_length=100)]
_PressPayload = Annotated[str, Meta(max_length=262_144)]
_DeviceIdOrNone = Annotated[
    str,
    Meta(
        pattern=r"^([A-Fa-f0-9]{24})?$",
        max_length=24,
        extra={FORM: "an id of 24 hexadecimal digits, or nothing"},
    ),
]
_Cycle = Annotated[int, Meta(ge=10, le=3_600_000)]


class NoConfig(Body, frozen=True):
    """A type of trigger without settings."""


class FileConfig(Body, frozen=True):
    """Changes of files that start the workflow."""

    create: _Flag = UNSET
    update: _Flag = UNSET
    delete: _Flag = UNSET
    public: _Flag = UNSET
    private: _Flag = UNSET


class BeckhoffConfig(Body, frozen=True):
    """A controller, and its variables."""

    local_ams_net_id: Text | UnsetType = UNSET
    local_ads_port: Text | UnsetType = UNSET
    target_ams_net_id: Text | UnsetType = UNSET
    target_ads_port: Text | UnsetType = UNSET
    router_host: Text | UnsetType = UNSET
    router_tcp_port: Text | UnsetType = UNSET
    cycle_time_ms: _Cycle | UnsetType = UNSET
    subscriptions: Annotated[list[dict[str, Any]], Meta(max_length=100)] | UnsetType = UNSET
    config_name: Text | UnsetType = UNSET


class TableConfig(Body, frozen=True):
    """Changes of rows that start the workflow."""

    insert: _Flag = UNSET
    bulk_insert: _Flag = UNSET
    update: _Flag = UNSET
    delete: _Flag = UNSET


class IntegrationConfig(Body, frozen=True):
    """What of an integration starts the workflow."""

    connect: _Flag = UNSET
    message: _Flag = UNSET
    disconnect: _Flag = UNSET
    failure: _Flag = UNSET


class StateConfig(Body, frozen=True):
    """Which reports of devices start the workflow."""

    attribute_whitelist: _Keys | UnsetType = UNSET
    attribute_blacklist: _Keys | UnsetType = UNSET
    max_age: _Number | UnsetType = UNSET
    trigger_on: Literal["batch", "individual", "both"] | UnsetType = UNSET
    batch_behavior: Literal["once", "each"] | UnsetType = UNSET
    allow_invalid: _Flag = UNSET


class InactivityConfig(Body, frozen=True):
    """How long a device has to be silent."""

    seconds: _Number | UnsetType = UNSET


class EndpointConfig(Body, frozen=True):
    """The version of the experience whose requests start the workflow."""

    experience_version: Name | UnsetType = UNSET


class EventConfig(Body, frozen=True):
    """Which events start the workflow."""

    subject: _Short | UnsetType = UNSET
    new: _Flag = UNSET
    acknowledged: _Flag = UNSET
    resolved: _Flag = UNSET


class TailConfig(Body, frozen=True):
    """A file of the device whose new lines start the workflow."""

    path: Text | UnsetType = UNSET
    encoding: _Word | UnsetType = UNSET
    byte_length: _Word | UnsetType = UNSET
    delimiter: _Word | UnsetType = UNSET


class WatchConfig(Body, frozen=True):
    """A path of the device, and the changes below it that start the workflow."""

    path: Text | UnsetType = UNSET
    file_added: _Flag = UNSET
    file_changed: _Flag = UNSET
    file_removed: _Flag = UNSET
    directory_added: _Flag = UNSET
    directory_removed: _Flag = UNSET


class ErrorConfig(Body, frozen=True):
    """Whose errors start the workflow."""

    scope: Literal["local", "global", "experience", "cloud"] | UnsetType = UNSET


OWN_BROKER: Final = ("", "losant", "local")
"""How triggers and nodes of workflows name the topics of their application, where others name an integration."""


class TopicConfig(Body, frozen=True):
    """The broker of the topic."""

    integration_id: _Short | UnsetType = UNSET


class SyncConfig(Body, frozen=True):
    """What has to be synchronized."""

    sync_types: (
        Annotated[list[Literal["application", "device", "peripheral"]], Meta(min_length=1, max_length=3)]
        | UnsetType
    ) = UNSET


class OpcUaConfig(Body, frozen=True):
    """A server of OPC UA, and the node that is watched."""

    uri: Text | UnsetType = UNSET
    security_policy: _Short | UnsetType = UNSET
    security_mode: _Short | UnsetType = UNSET
    username: Text | UnsetType = UNSET
    password: Text | UnsetType = UNSET
    cert: Description | UnsetType = UNSET
    private_key: Description | UnsetType = UNSET
    name_space: _Short | UnsetType = UNSET
    identifier: _Short | UnsetType = UNSET
    sampling_interval: _Short | UnsetType = UNSET
    event_filter: Annotated[list[_Short], Meta(max_length=100)] | UnsetType = UNSET
    config_name: Text | UnsetType = UNSET


class RedisConfig(Body, frozen=True):
    """A server of Redis, and the channel whose messages start the workflow."""

    host: Text | UnsetType = UNSET
    port: Annotated[str, Meta(max_length=16)] | UnsetType = UNSET
    password: Text | UnsetType = UNSET
    topic: Text | UnsetType = UNSET
    file_added: _Flag = UNSET
    file_changed: _Flag = UNSET
    file_removed: _Flag = UNSET
    directory_added: _Flag = UNSET
    directory_removed: _Flag = UNSET


class RequestConfig(Body, frozen=True):
    """The requests to the device that start the workflow."""

    method: Literal["*", "delete", "get", "options", "patch", "post", "put"] | UnsetType = UNSET
    route: Text | UnsetType = UNSET


class SerialConfig(Body, frozen=True):
    """A serial port, and how its bytes are read."""

    path: Text | UnsetType = UNSET
    baud_rate: _Number | UnsetType = UNSET
    data_bits: _Number | UnsetType = UNSET
    stop_bits: _Number | UnsetType = UNSET
    parity: Annotated[str, Meta(max_length=8)] | UnsetType = UNSET
    rtscts: _Flag = UNSET
    encoding: _Word | UnsetType = UNSET
    write_on_open: Text | UnsetType = UNSET
    write_on_open_encoding: _Word | UnsetType = UNSET
    byte_length: _Word | UnsetType = UNSET
    delimiter: _Word | UnsetType = UNSET
    delimiter_encoding: _Word | UnsetType = UNSET


class SnmpUser(Body, frozen=True):
    """A user of SNMP."""

    name: Text
    security_level: Literal["none", "auth", "authAndEncrypt"]
    auth_method: Literal["sha", "md5"] | UnsetType = UNSET
    auth_key: Text | UnsetType = UNSET
    encryption_method: Literal["aes", "des"] | UnsetType = UNSET
    encryption_key: Text | UnsetType = UNSET


class SnmpAccess(Body, frozen=True):
    """Whose traps are accepted."""

    community: Text | UnsetType = UNSET
    user: SnmpUser | UnsetType = UNSET


class SnmpConfig(Body, frozen=True):
    """The port and the users of SNMP traps."""

    udp_port: Annotated[str, Meta(max_length=5)]
    snmp_trap_config: SnmpAccess


class TimerConfig(Body, frozen=True):
    """An interval in seconds, or a cron expression with its time zone."""

    seconds: _Number | UnsetType = UNSET
    cron: _Short | UnsetType = UNSET
    tz: _Short | UnsetType = UNSET


class TriggerMeta(Body, frozen=True):
    """How an editor shows a trigger."""

    category: Literal["trigger"] | UnsetType = UNSET
    label: Name | UnsetType = UNSET
    x: _Number | UnsetType = UNSET
    y: _Number | UnsetType = UNSET
    ui_id: _Word | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    icon: Text | UnsetType = UNSET
    color: Text | UnsetType = UNSET
    input_count: _Number | UnsetType = UNSET
    output_count: _Number | UnsetType = UNSET
    id: _Word | UnsetType = UNSET


_TRIGGER_ID: Final = {"trigger_id": _Word}
_TIMER: Final = {
    "timer_type_select": Literal["cronWeekly", "seconds", "cron"],
    "time_at": _Short,
    "timezone": _Short,
    "weekdays": Annotated[list[_Number], Meta(max_length=7)],
}
_STATE: Final = {
    "time_unit": _Word,
    "max_age_toggle": bool,
    "allowed_attribute_type": Literal["attributeWhitelist", "any", "attributeBlacklist"],
}
_BUTTON: Final = {"group_id": _Word, "payload": _PressPayload, "device_id": _DeviceIdOrNone | None}

_PLAIN_NAMES: Final = (
    "customNodeStart", "deviceCreate", "deviceCommand", "deviceIdsTagsConnect", "deviceIdsTagsDisconnect", "eeaInit",
    "flowError", "inboundEmail", "notebook", "onBoot", "onConnect", "onDisconnect", "resourceJobComplete",
    "resourceJobIteration", "resourceJobIterationTimeout", "udp", "webhook",
)  # fmt: skip
_BROKERS: Final = ("azureEventHub", "googlePubSub", "mqtt", "particle", "sqs", "websocket")


class _Form(NamedTuple):
    """The fields of triggers: `config`, the values of `meta.name`, and further fields of `meta`."""

    name: str
    config: type[Body]
    names: tuple[str, ...]
    meta: dict[str, Any] | None = None


_PLAIN: Final = _Form("Plain", NoConfig, _PLAIN_NAMES, _TRIGGER_ID)
_STATES: Final = _Form("State", StateConfig, ("deviceIdsTags", "device", "deviceTag"), _STATE)
_INACTIVITY: Final = _Form("Inactivity", InactivityConfig, ("deviceIdsTagsInactivity",))
_SERIAL: Final = {"parse_by": Literal["byteLength", "delimiter"]}

_CUSTOM: Final = frozenset({"customNode"})
_EDGE: Final = frozenset({"edge"})
_DEVICE: Final = frozenset({"edge", "embedded"})


class _KeyForm(NamedTuple):
    """What a key has to be, in words and as a pattern."""

    words: str
    form: re.Pattern[str]


class TriggerType(NamedTuple):
    """A type of trigger. `classes`: those of workflows in which it is valid; None for all.

    `reads`: the operations that the author of a workflow must be allowed to call, for a run to be told what they show.
    `key`: what the key has to be, where a trigger without one never fires.
    """

    form: _Form
    reads: tuple[str, ...]
    classes: frozenset[str] | None = None
    is_started: bool = True
    key: _KeyForm | None = None


def _id_of(noun: str) -> _KeyForm:
    return _KeyForm(f"the id of {noun}", re.compile("[0-9A-Fa-f]{24}"))


_DEVICE_KEY: Final = _id_of("a device")
_TAG_KEY: Final = _KeyForm(
    "key/value of a tag, key/ for any value, or /value for any key",
    re.compile("[0-9a-zA-Z_-]{1,255}/.*|/.+", re.DOTALL),
)
_LEVEL_KEY: Final = _KeyForm("a level, or any", re.compile("info|warning|error|critical|any"))
_PATH_KEY: Final = _KeyForm(
    "the path of a file, such as /a/b.txt, or of a directory, such as /a/", re.compile("/.*", re.DOTALL)
)
_TOPIC_KEY: Final = _KeyForm(TOPIC_FILTER_FORM, re.compile(TOPIC_FILTER_PATTERN))

_NOTHING: Final = ()
"""What is told is what was sent to the workflow, or only the time: no operation reads it."""
_READS_DEVICE: Final = ("device.get",)
_READS_STATE: Final = ("device.get", "device.getState")


def _never(form: _Form) -> TriggerType:
    """A type that is stored and starts nothing: no mail arrives here, no notebooks and no resource jobs are run."""
    return TriggerType(form, _NOTHING, is_started=False)


def _on_devices(form: _Form, classes: frozenset[str] = _EDGE) -> TriggerType:
    """A type of workflows that run on devices only."""
    return TriggerType(form, _NOTHING, classes)


TYPES: Final[dict[str, TriggerType]] = {
    "appFile": TriggerType(_Form("File", FileConfig, ("appFile",)), ("file.get",), key=_PATH_KEY),
    "customNodeStart": TriggerType(_PLAIN, _NOTHING, _CUSTOM),
    "deviceCreate": TriggerType(_PLAIN, _READS_DEVICE),
    "deviceCommand": _on_devices(_PLAIN, _DEVICE),
    "deviceIdConnect": TriggerType(_PLAIN, _READS_DEVICE, key=_DEVICE_KEY),
    "deviceTagConnect": TriggerType(_PLAIN, _READS_DEVICE, key=_TAG_KEY),
    "deviceIdDisconnect": TriggerType(_PLAIN, _READS_DEVICE, key=_DEVICE_KEY),
    "deviceTagDisconnect": TriggerType(_PLAIN, _READS_DEVICE, key=_TAG_KEY),
    "inboundEmail": _never(_PLAIN),
    "notebook": _never(_PLAIN),
    "onBoot": _on_devices(_PLAIN, _DEVICE),
    "onConnect": _on_devices(_PLAIN, _DEVICE),
    "onDisconnect": _on_devices(_PLAIN, _DEVICE),
    "resourceJobComplete": _never(_PLAIN),
    "resourceJobIteration": _never(_PLAIN),
    "resourceJobIterationTimeout": _never(_PLAIN),
    "udp": _on_devices(_PLAIN),
    "webhook": TriggerType(_PLAIN, _NOTHING, key=_id_of("a webhook")),
    "beckhoff": _on_devices(_Form("Beckhoff", BeckhoffConfig, ("beckhoff",))),
    "dataTable": TriggerType(
        _Form("Table", TableConfig, ("dataTable",)), ("dataTableRow.get",), key=_id_of("a data table")
    ),
    "integration": TriggerType(
        _Form("Integration", IntegrationConfig, _BROKERS, _TRIGGER_ID),
        _NOTHING,
        key=_id_of("an integration"),
    ),
    "deviceId": TriggerType(_STATES, _READS_STATE, key=_DEVICE_KEY),
    "deviceTag": TriggerType(_STATES, _READS_STATE, key=_TAG_KEY),
    "deviceIdInactivity": TriggerType(_INACTIVITY, _READS_DEVICE, key=_DEVICE_KEY),
    "deviceTagInactivity": TriggerType(_INACTIVITY, _READS_DEVICE, key=_TAG_KEY),
    "direct": TriggerType(_Form("Direct", NoConfig, ("direct",)), _NOTHING),
    "endpoint": TriggerType(
        _Form("Endpoint", EndpointConfig, ("endpoint",)), _NOTHING, key=_id_of("an endpoint")
    ),
    "event": TriggerType(_Form("Event", EventConfig, ("event",)), ("event.get",), key=_LEVEL_KEY),
    "fileTail": _on_devices(_Form("Tail", TailConfig, ("fileTail",))),
    "fileWatch": _on_devices(_Form("Watch", WatchConfig, ("fileWatch",))),
    "flowError": TriggerType(_Form("Error", ErrorConfig, ("flowError",)), ("flowRun.get",)),
    "mqttTopic": TriggerType(_Form("Topic", TopicConfig, ("mqtt",), _TRIGGER_ID), _NOTHING, key=_TOPIC_KEY),
    "onSync": _on_devices(_Form("Sync", SyncConfig, ("onSync",))),
    "opcua": _on_devices(_Form("OpcUa", OpcUaConfig, ("opcua",))),
    "redis": _on_devices(_Form("Redis", RedisConfig, ("redisTrigger",))),
    "request": _on_devices(_Form("Request", RequestConfig, ("request",), _TRIGGER_ID)),
    "serial": _on_devices(_Form("Serial", SerialConfig, ("serial",), _SERIAL)),
    "snmpTrap": _on_devices(_Form("Snmp", SnmpConfig, ("snmpTrap",))),
    "timer": TriggerType(_Form("Timer", TimerConfig, ("timer",), _TIMER), _NOTHING),
    "virtualButton": TriggerType(_Form("Button", NoConfig, ("virtualButton",), _BUTTON), _NOTHING),
}
"""All types, by name: what their triggers are, where they are valid, and what their runs are told."""


def _optional(hints: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(name, hint | UnsetType, UNSET) for name, hint in hints.items()]


def _meta(form: _Form) -> type[Body]:
    return msgspec.defstruct(  # type: ignore[return-value]
        f"{form.name}Meta",
        _optional({"name": Literal[form.names], **(form.meta or {})}),
        bases=(TriggerMeta,),
        namespace={"__doc__": TriggerMeta.__doc__},
        module=__name__,
        frozen=True,
        kw_only=True,
    )


def _structs() -> dict[str, type[Body]]:
    """A struct for each type of trigger, in the order of the table."""
    metas: dict[str, type[Body]] = {}
    structs: dict[str, type[Body]] = {}
    for type, known in TYPES.items():
        form = known.form
        meta = metas.get(form.name) or metas.setdefault(form.name, _meta(form))
        structs[type] = msgspec.defstruct(  # type: ignore[assignment]
            f"{type[0].upper()}{type[1:]}Trigger",
            _optional({"key": Text, "config": form.config, "meta": meta, "output_ids": OutputIds}),
            bases=(Body,),
            namespace={"__doc__": f"A trigger of type {type}."},
            module=__name__,
            frozen=True,
            kw_only=True,
            tag_field="type",
            tag=type,
        )
    for made in (*metas.values(), *structs.values()):
        globals()[made.__name__] = made  # where another process looks for it, to which a message is sent
    return structs


TRIGGERS: Final = _structs()
"""The struct of each type of trigger."""

if TYPE_CHECKING:
    Trigger = Body
else:
    Trigger = Union[tuple(TRIGGERS.values())]  # noqa: UP007 - its members are not known to the parser
