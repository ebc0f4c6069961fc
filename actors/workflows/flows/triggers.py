"""The triggers of workflows: for each type the fields of its `config` and of its `meta`.

Both are closed: a field that a type does not have is refused, so a misspelt one is found when the workflow is saved.
Everything else of a trigger is stored as it was sent. What `key` names (a device, an endpoint, a table) need not exist:
a workflow that was made elsewhere names what will be made here later.

The module is long because there are many types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.core.values.structs import FORM, Body
from trunkline.actors.core.values.terms import Description, Key, Name

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

_PLAIN: Final = (
    "customNodeStart", "deviceCreate", "deviceCommand", "deviceIdConnect", "deviceTagConnect",
    "deviceIdDisconnect", "deviceTagDisconnect", "inboundEmail", "notebook", "onBoot", "onConnect", "onDisconnect",
    "resourceJobComplete", "resourceJobIteration", "resourceJobIterationTimeout", "udp", "webhook",
)  # fmt: skip
_PLAIN_NAMES: Final = (
    "customNodeStart", "deviceCreate", "deviceCommand", "deviceIdsTagsConnect", "deviceIdsTagsDisconnect", "eeaInit",
    "flowError", "inboundEmail", "notebook", "onBoot", "onConnect", "onDisconnect", "resourceJobComplete",
    "resourceJobIteration", "resourceJobIterationTimeout", "udp", "webhook",
)  # fmt: skip
_BROKERS: Final = ("azureEventHub", "googlePubSub", "mqtt", "particle", "sqs", "websocket")

_FORMS: Final[tuple[tuple[str, tuple[str, ...], type[Body], tuple[str, ...], dict[str, Any]], ...]] = (
    ("File", ("appFile",), FileConfig, ("appFile",), {}),
    ("Plain", _PLAIN, NoConfig, _PLAIN_NAMES, _TRIGGER_ID),
    ("Beckhoff", ("beckhoff",), BeckhoffConfig, ("beckhoff",), {}),
    ("Table", ("dataTable",), TableConfig, ("dataTable",), {}),
    ("Integration", ("integration",), IntegrationConfig, _BROKERS, _TRIGGER_ID),
    ("State", ("deviceId", "deviceTag"), StateConfig, ("deviceIdsTags", "device", "deviceTag"), _STATE),
    (
        "Inactivity",
        ("deviceIdInactivity", "deviceTagInactivity"),
        InactivityConfig,
        ("deviceIdsTagsInactivity",),
        {},
    ),
    ("Direct", ("direct",), NoConfig, ("direct",), {}),
    ("Endpoint", ("endpoint",), EndpointConfig, ("endpoint",), {}),
    ("Event", ("event",), EventConfig, ("event",), {}),
    ("Tail", ("fileTail",), TailConfig, ("fileTail",), {}),
    ("Watch", ("fileWatch",), WatchConfig, ("fileWatch",), {}),
    ("Error", ("flowError",), ErrorConfig, ("flowError",), {}),
    ("Topic", ("mqttTopic",), TopicConfig, ("mqtt",), _TRIGGER_ID),
    ("Sync", ("onSync",), SyncConfig, ("onSync",), {}),
    ("OpcUa", ("opcua",), OpcUaConfig, ("opcua",), {}),
    ("Redis", ("redis",), RedisConfig, ("redisTrigger",), {}),
    ("Request", ("request",), RequestConfig, ("request",), _TRIGGER_ID),
    (
        "Serial",
        ("serial",),
        SerialConfig,
        ("serial",),
        {"parse_by": Literal["byteLength", "delimiter"]},
    ),
    ("Snmp", ("snmpTrap",), SnmpConfig, ("snmpTrap",), {}),
    ("Timer", ("timer",), TimerConfig, ("timer",), _TIMER),
    ("Button", ("virtualButton",), NoConfig, ("virtualButton",), _BUTTON),
)
"""The forms of triggers: its name, the types that have it, `config`, the values of `meta.name`, further fields of
`meta`."""


def _optional(hints: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(name, hint | UnsetType, UNSET) for name, hint in hints.items()]


def _structs() -> dict[str, type[Body]]:
    """A struct for each type of trigger, in the order of the table."""
    structs: dict[str, type[Body]] = {}
    for form, types, config, names, more in _FORMS:
        meta = msgspec.defstruct(
            f"{form}Meta",
            _optional({"name": Literal[names], **more}),
            bases=(TriggerMeta,),
            namespace={"__doc__": TriggerMeta.__doc__},
            module=__name__,
            frozen=True,
            kw_only=True,
        )
        for type in types:
            structs[type] = msgspec.defstruct(  # type: ignore[assignment]
                f"{type[0].upper()}{type[1:]}Trigger",
                _optional({"key": Text, "config": config, "meta": meta, "output_ids": OutputIds}),
                bases=(Body,),
                namespace={"__doc__": f"A trigger of type {type}."},
                module=__name__,
                frozen=True,
                kw_only=True,
                tag_field="type",
                tag=type,
            )
    return structs


TRIGGERS: Final = _structs()
"""The struct of each type of trigger."""

if TYPE_CHECKING:
    Trigger = Body
else:
    Trigger = Union[tuple(TRIGGERS.values())]  # noqa: UP007 - its members are not known to the parser

_EDGE: Final = frozenset({"edge"})
_DEVICE: Final = frozenset({"edge", "embedded"})

CLASSES: Final[dict[str, frozenset[str]]] = {
    "customNodeStart": frozenset({"customNode"}),
    **dict.fromkeys(("deviceCommand", "onBoot", "onConnect", "onDisconnect"), _DEVICE),
    **dict.fromkeys(
        (
            "beckhoff",
            "fileTail",
            "fileWatch",
            "onSync",
            "opcua",
            "redis",
            "request",
            "serial",
            "snmpTrap",
            "udp",
        ),
        _EDGE,
    ),
}
"""The classes of workflows in which a type of trigger is valid; a type that is missing here is valid in all."""

NEVER_STARTED: Final = frozenset(
    {"inboundEmail", "notebook", "resourceJobComplete", "resourceJobIteration", "resourceJobIterationTimeout"}
)
"""Types that are stored and start nothing: no mail arrives here, and no notebooks and no resource jobs are run."""
