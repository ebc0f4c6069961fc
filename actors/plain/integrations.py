"""Integrations: connections of an application to brokers and services. Owns the records; nothing connects yet."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.plain.credentials import CREDENTIAL
from trunkline.actors.records.kind import Doc, Kind
from trunkline.actors.records.owner import find_by_unique
from trunkline.actors.records.page import Page
from trunkline.actors.records.resource import Change, Resource
from trunkline.actors.values.errors import Invalid
from trunkline.actors.values.structs import Body, Query, View
from trunkline.actors.values.terms import Id, Name, RecordView

_Text = Annotated[str, Meta(min_length=1, max_length=1024)]
_Text256 = Annotated[str, Meta(min_length=1, max_length=256)]
_Text128 = Annotated[str, Meta(min_length=1, max_length=128)]
_Pem = Annotated[str, Meta(min_length=4, max_length=32767)]
_ProjectId = Annotated[str, Meta(min_length=1, max_length=255)]
_AwsText = Annotated[str, Meta(min_length=4, max_length=128)]
_Port = Annotated[int, Meta(ge=1, le=65_535)]
_Protocol = Literal["mqtt", "mqtts", "ws", "wss"]
_ProtocolVersion = Literal["3.1.1", "5"]
_Topics = Annotated[list[_Text], Meta(max_length=1000)]

IntegrationType = Literal["azureEventHub", "googlePubSub", "mqtt", "particle", "sqs", "websocket"]


# Configurations: a field that a change omits stays; null removes it.


class AzureEventHubConfig(Body, frozen=True):
    """An event hub of Azure, reached by a connection string, or by its host and a credential."""

    hub_name: _Text256 | UnsetType = UNSET
    consumer_group: _Text256 | UnsetType = UNSET
    host_name: _Text256 | UnsetType | None = UNSET
    connection_string: _Text | UnsetType | None = UNSET


class AzureEventHubView(View, frozen=True):
    """An event hub of Azure, without its secret."""

    hub_name: str
    consumer_group: str
    host_name: str | None = None


class GooglePubSubConfig(Body, frozen=True):
    """A subscription of Google Pub/Sub."""

    project_id: _ProjectId | UnsetType | None = UNSET
    key_json: _Pem | UnsetType | None = UNSET


class GooglePubSubView(View, frozen=True):
    """A subscription of Google Pub/Sub, without its secret."""

    project_id: str | None = None


class MqttConfig(Body, frozen=True):
    """A broker for MQTT."""

    protocol: _Protocol | UnsetType = UNSET
    host: _Text | UnsetType = UNSET
    port: _Port | UnsetType = UNSET
    client_id: _Text | UnsetType | None = UNSET
    username: _Text | UnsetType | None = UNSET
    password: _Text | UnsetType | None = UNSET
    clean: bool | UnsetType = UNSET
    private_key: _Pem | UnsetType | None = UNSET
    certificate: _Pem | UnsetType | None = UNSET
    ca_certificate: _Pem | UnsetType | None = UNSET
    disable_ssl_verification: bool | UnsetType = field(default=UNSET, name="disableSSLVerification")
    protocol_version: _ProtocolVersion | UnsetType = UNSET


class MqttView(View, frozen=True):
    """A broker for MQTT, without its secrets."""

    protocol: _Protocol
    host: str
    port: int
    client_id: str | None = None
    username: str | None = None
    clean: bool | None = None
    certificate: str | None = None
    ca_certificate: str | None = None
    disable_ssl_verification: bool | None = field(default=None, name="disableSSLVerification")
    protocol_version: _ProtocolVersion | None = None


class ParticleConfig(Body, frozen=True):
    """A product of the Particle cloud."""

    access_token: _Text | UnsetType = UNSET
    product_slug_or_id: _Text | UnsetType | None = UNSET
    org_slug_or_id: _Text | UnsetType | None = UNSET
    device_name_or_id: _Text | UnsetType | None = UNSET


class ParticleView(View, frozen=True):
    """A product of the Particle cloud, without its secret."""

    product_slug_or_id: str | None = None
    org_slug_or_id: str | None = None
    device_name_or_id: str | None = None


class SqsConfig(Body, frozen=True):
    """A queue of Amazon SQS."""

    queue_url: _Text256 | UnsetType = UNSET
    access_key_id: _AwsText | UnsetType | None = UNSET
    secret_access_key: _AwsText | UnsetType | None = UNSET
    region: _AwsText | UnsetType | None = UNSET


class SqsView(View, frozen=True):
    """A queue of Amazon SQS, without its secret."""

    queue_url: str
    access_key_id: str | None = None
    region: str | None = None


class Header(Body, frozen=True):
    """A header of a request; its value is never shown."""

    header_key: _Text
    header_value: _Text


class HeaderView(View, frozen=True):
    """A header of a request, without its value."""

    header_key: str


class WebsocketConfig(Body, frozen=True):
    """A server for WebSocket."""

    url: _Text | UnsetType = UNSET
    username: _Text | UnsetType | None = UNSET
    password: _Text | UnsetType | None = UNSET
    private_key: _Pem | UnsetType | None = UNSET
    certificate: _Pem | UnsetType | None = UNSET
    ca_certificate: _Pem | UnsetType | None = UNSET
    disable_ssl_verification: bool | UnsetType = field(default=UNSET, name="disableSSLVerification")
    headers: Annotated[list[Header], Meta(max_length=50)] | UnsetType = UNSET


class WebsocketView(View, frozen=True):
    """A server for WebSocket, without its secrets."""

    url: str
    username: str | None = None
    certificate: str | None = None
    ca_certificate: str | None = None
    disable_ssl_verification: bool | None = field(default=None, name="disableSSLVerification")
    headers: list[HeaderView] | None = None


# Integrations.


class IntegrationPost(Body, frozen=True):
    """A new integration. It needs the configuration of its type and no other."""

    name: Name
    integration_type: IntegrationType
    enabled: bool = True
    credential_name: Name | UnsetType = UNSET
    topics: _Topics | UnsetType = UNSET
    azure_event_hub_config: AzureEventHubConfig | UnsetType = UNSET
    google_pub_sub_config: GooglePubSubConfig | UnsetType = UNSET
    mqtt_config: MqttConfig | UnsetType = UNSET
    particle_config: ParticleConfig | UnsetType = UNSET
    sqs_config: SqsConfig | UnsetType = UNSET
    websocket_config: WebsocketConfig | UnsetType = UNSET


class IntegrationPatch(Body, frozen=True):
    """Changes of an integration; omitted fields stay as they are, also within the configuration."""

    name: Name | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    credential_name: Name | UnsetType | None = UNSET
    topics: _Topics | UnsetType = UNSET
    azure_event_hub_config: AzureEventHubConfig | UnsetType = UNSET
    google_pub_sub_config: GooglePubSubConfig | UnsetType = UNSET
    mqtt_config: MqttConfig | UnsetType = UNSET
    particle_config: ParticleConfig | UnsetType = UNSET
    sqs_config: SqsConfig | UnsetType = UNSET
    websocket_config: WebsocketConfig | UnsetType = UNSET


class IntegrationPage(Page, frozen=True):
    """A page of integrations."""

    sort_field: Literal["name", "id", "creationDate", "integrationType", "lastUpdated"] = "name"
    filter_field: Literal["name", "integrationType"] | None = None


class IntegrationRemoval(Query, frozen=True):
    """`includeWorkflows`: also delete the workflows that the integration triggers."""

    include_workflows: bool = False


class IntegrationView(RecordView, frozen=True, kw_only=True):
    """An integration, without its secrets."""

    integration_id: Id
    application_id: Id
    name: str
    integration_type: IntegrationType
    enabled: bool
    topics: list[str]
    credential_name: str | None = None
    azure_event_hub_config: AzureEventHubView | None = None
    google_pub_sub_config: GooglePubSubView | None = None
    mqtt_config: MqttView | None = None
    particle_config: ParticleView | None = None
    sqs_config: SqsView | None = None
    websocket_config: WebsocketView | None = None


_REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "azureEventHub": ("hubName", "consumerGroup"),
    "googlePubSub": (),
    "mqtt": ("protocol", "host", "port"),
    "particle": ("accessToken",),
    "sqs": ("queueUrl",),
    "websocket": ("url",),
}
"""By type: the fields that its configuration must have."""

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
        raise Invalid("topics: a topic stands in the list twice; name each one once.")
    config = new[own] = {name: value for name, value in new.get(own, {}).items() if value is not None}
    for name in _REQUIRED[type]:
        if name not in config:
            raise Invalid(f"{own}: needs {name}.")
    if type == "azureEventHub" and ("connectionString" in config) == ("hostName" in config):
        raise Invalid(f"{own}: needs either connectionString, or hostName and a credential.")
    if change.named.get("credentialName") is not None:
        _check_credential(change, type)


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
)
