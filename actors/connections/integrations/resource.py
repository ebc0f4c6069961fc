"""Integrations: connections of an application to brokers and services. Owns the records, not the connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from trunkline.actors.connections.credentials.resource import CREDENTIAL
from trunkline.actors.connections.integrations import configs
from trunkline.actors.connections.integrations.checks import check_connectable
from trunkline.actors.core.records.kind import Doc, Kind
from trunkline.actors.core.records.owner import find_by_unique
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.read_context import ReadContext
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.changes import Fixed, Removable, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.structs import Body, Query, View
from trunkline.actors.core.values.terms import Id, Name, RecordView
from trunkline.actors.data.topics.filters import check_form
from trunkline.store import keys
from trunkline.store.codec import decode
from trunkline.store.keyring import Keyring, sealed_values

if TYPE_CHECKING:
    from trunkline.actors.core.runtime.actor import Actor

_Topic = Annotated[str, Meta(min_length=1, max_length=1024)]
_Topics = Annotated[list[_Topic], Meta(max_length=1000)]

IntegrationType = Literal["azureEventHub", "googlePubSub", "mqtt", "particle", "sqs", "websocket"]


class IntegrationPost(Body, frozen=True):
    """A new integration. It needs the configuration of its type and no other."""

    name: Name
    integration_type: Fixed[IntegrationType]
    enabled: bool | UnsetType = UNSET
    credential_name: Removable[Name] | UnsetType = UNSET
    topics: _Topics | UnsetType = UNSET
    azure_event_hub_config: configs.AzureEventHubConfig | UnsetType = UNSET
    google_pub_sub_config: configs.GooglePubSubConfig | UnsetType = UNSET
    mqtt_config: configs.MqttConfig | UnsetType = UNSET
    particle_config: configs.ParticleConfig | UnsetType = UNSET
    sqs_config: configs.SqsConfig | UnsetType = UNSET
    websocket_config: configs.WebsocketConfig | UnsetType = UNSET


@changes_of(IntegrationPost)
class IntegrationPatch(Body, frozen=True):
    """Changes of an integration; omitted fields stay as they are, also within the configuration."""


class IntegrationPage(Page, frozen=True):
    """A page of integrations."""

    sort_field: Literal["name", "id", "creationDate", "integrationType", "lastUpdated"] = "name"
    filter_field: Literal["name", "integrationType"] | None = None


class IntegrationRemoval(Query, frozen=True):
    """`includeWorkflows`: also delete the workflows that the integration triggers."""

    include_workflows: bool = False


class ConnectInfo(View, frozen=True):
    """Since when it is connected, in milliseconds; null if it is not."""

    ts: int | None


class DisconnectInfo(View, frozen=True):
    """When it was last disconnected, or failed to connect, in milliseconds; and why."""

    ts: int | None
    error: str | None = None


class ConnectionState(View, frozen=True):
    """The state of the connection; times in milliseconds."""

    connect_info: ConnectInfo
    disconnect_info: DisconnectInfo
    last_keep_alive: int | None = None
    next_attempt: int | None = None


class IntegrationView(RecordView, frozen=True, kw_only=True):
    """An integration, without its secrets."""

    integration_id: Id
    application_id: Id
    name: str
    integration_type: IntegrationType
    enabled: bool
    topics: list[str]
    credential_name: str | None = None
    azure_event_hub_config: configs.AzureEventHubView | None = None
    google_pub_sub_config: configs.GooglePubSubView | None = None
    mqtt_config: configs.MqttView | None = None
    particle_config: configs.ParticleView | None = None
    sqs_config: configs.SqsView | None = None
    websocket_config: configs.WebsocketView | None = None
    status: ConnectionState | None = None


CONNECTS: Final = ("mqtt", "websocket")
"""The types that this server connects. The others are stored, and are not enabled."""

_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "azureEventHub": ("hubName", "consumerGroup"),
    "googlePubSub": (),
    "mqtt": ("protocol", "host", "port"),
    "particle": ("accessToken",),
    "sqs": ("queueUrl",),
    "websocket": ("url",),
}
"""By type: the fields that its configuration must have."""

_OF_CONNECTIONS: Final = frozenset(
    {"enabled", "credentialName", "topics", *(f"{type}Config" for type in _REQUIRED)}
)
"""The fields whose change is a change of the connection."""

_CREDENTIALS: Final[dict[str, tuple[str, ...]]] = {
    "azureEventHub": ("azure",),
    "googlePubSub": ("gcp",),
    "sqs": ("aws",),
}
"""By type: the types of credentials that it may use, where it uses those of one service only."""


def _check(change: Change) -> None:
    """Check that the configuration is that of the type and complete, and that the credential exists and fits."""
    new, named = change.new, change.named
    type = new["integrationType"]
    own = f"{type}Config"
    for other in _REQUIRED:
        if f"{other}Config" in named and other != type:
            raise Invalid(f"{other}Config: belongs to another type of integration; for {type} give {own}.")
    if own not in new and _REQUIRED[type]:
        raise Invalid(f"{own}: an integration of the type {type} needs it.")
    topics = new.setdefault("topics", [])
    if len(set(topics)) < len(topics):
        raise Invalid("topics: a topic appears twice in the list; name each one once.")
    config = new[own] = {name: value for name, value in new.get(own, {}).items() if value is not None}
    for name in _REQUIRED[type]:
        if name not in config:
            raise Invalid(f"{own}: needs {name}.")
    if type == "azureEventHub" and ("connectionString" in config) == ("hostName" in config):
        raise Invalid(f"{own}: needs either connectionString, or hostName and a credential.")
    if change.named.get("credentialName") is not None:
        _check_credential(change, type)
    new.setdefault("enabled", type in CONNECTS)
    _check_enabled(change, type, config)
    _tell_of(change.owner, change.id)


def _check_enabled(change: Change, type: str, config: Doc) -> None:
    """Check that what is enabled can be connected. What an import brings along is disabled instead."""
    new = change.new
    if type == "mqtt" and "topics" in change.named:
        for index, topic in enumerate(new["topics"]):
            check_form(topic, f"topics[{index}]")
    if not new["enabled"] or (change.old is not None and not change.named.keys() & _OF_CONNECTIONS):
        return
    try:
        _check_connects(change, type, config)
    except Invalid:
        if not change.is_import:
            raise
        new["enabled"] = False


def _check_connects(change: Change, type: str, config: Doc) -> None:
    if type not in CONNECTS:
        raise Invalid(
            f"enabled: this server connects to {' and '.join(CONNECTS)}; store the type {type} with enabled false."
        )
    if "credentialName" in change.new:
        raise Invalid(
            f"credentialName: the type {type} uses no credentials; give the secrets in {type}Config."
        )
    clear = unsealed(change.owner.system.component(Keyring), change.id, {f"{type}Config": config})
    check_connectable(type, clear[f"{type}Config"], change.new["topics"])
    most, enabled = change.owner.system.limits.enabled_integrations_max, 0
    for id, doc in _siblings(change.owner):
        enabled += id != change.id and doc["enabled"] and doc["integrationType"] in CONNECTS
    if enabled >= most:
        raise Invalid(f"enabled: {most} integrations of this application are enabled, which is the limit.")


def unsealed(keyring: Keyring, id: bytes, settings: Doc) -> Doc:
    """A copy of settings of an integration, with their secrets in clear text."""
    clear = deepcopy(settings)
    for each in list(sealed_values(clear)):
        each.holder[each.key] = keyring.unseal(each.value, kind=INTEGRATION.name, id=id, field=each.field)
    return clear


def _siblings(owner: Actor) -> Iterator[tuple[bytes, Doc]]:
    """The integrations of the application."""
    prefix = keys.record_prefix(INTEGRATION.name, owner.ref.id)
    end = keys.prefix_end(prefix)
    assert end is not None
    for key, raw in owner.system.journal.range(keys.RECORDS, prefix, end):
        yield key[-keys.ID_BYTES :], decode(raw)


class IntegrationBoard:
    """What tells the connections of a changed integration, and shows their states. A component.

    `on_change` is called after the commit. `state_of` gives the state of an integration, None if it has no connection.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[Ref], None] = lambda _ref: None
        self.state_of: Callable[[bytes], Doc | None] = lambda _id: None


def _tell_of(owner: Actor, id: bytes) -> None:
    board = owner.system.component(IntegrationBoard)
    ref = Ref(INTEGRATION.name, owner.ref.id, id)
    owner.after_commit(lambda: board.on_change(ref))


def _before_delete(owner: Actor, id: bytes, _doc: Doc) -> None:
    _tell_of(owner, id)


def _join(context: ReadContext, id: bytes, _doc: Doc, _query: object) -> Doc:
    """The state of the connection."""
    system = context.reading.system
    state = None if system is None else system.component(IntegrationBoard).state_of(id)
    return {} if state is None else {"status": state}


def _check_credential(change: Change, type: str) -> None:
    name = change.new["credentialName"]
    credential: Doc | None = find_by_unique(change.owner, CREDENTIAL, "name", name)
    if credential is None:
        raise Invalid(f"credentialName: the application has no credential {name}; create it first.")
    allowed = _CREDENTIALS.get(type)
    if allowed is not None and credential["type"] not in allowed:
        raise Invalid(f"credentialName: {name} is for {credential['type']}; give one for {allowed[0]}.")


INTEGRATION: Final = Kind(
    name="integration",
    noun="integration",
    indexes=("name", "integrationType", "creationDate", "lastUpdated"),
    counted_as="integrationCount",
    audited_as="Integration",
)

INTEGRATIONS: Final = Resource(
    name="integration",
    kind=INTEGRATION,
    post=IntegrationPost,
    patch=IntegrationPatch,
    page=IntegrationPage,
    view=IntegrationView,
    sealed=frozenset(
        {
            "azureEventHubConfig.connectionString",
            "googlePubSubConfig.keyJson",
            "mqttConfig.password",
            "mqttConfig.privateKey",
            "particleConfig.accessToken",
            "sqsConfig.secretAccessKey",
            "websocketConfig.password",
            "websocketConfig.privateKey",
            "websocketConfig.headers.headerValue",
        }
    ),
    check=_check,
    before_delete=_before_delete,
    join=_join,
)
