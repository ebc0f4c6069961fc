"""The configurations of integrations, and how they are shown. A field that a change omits stays; null removes it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.core.values.structs import Body, View

_Text = Annotated[str, Meta(min_length=1, max_length=1024)]
_Text256 = Annotated[str, Meta(min_length=1, max_length=256)]
_Text128 = Annotated[str, Meta(min_length=1, max_length=128)]
_Pem = Annotated[str, Meta(min_length=4, max_length=32767)]
_ProjectId = Annotated[str, Meta(min_length=1, max_length=255)]
_AwsText = Annotated[str, Meta(min_length=4, max_length=128)]
_Port = Annotated[int, Meta(ge=1, le=65_535)]
_Protocol = Literal["mqtt", "mqtts", "ws", "wss"]
_ProtocolVersion = Literal["3.1.1", "5"]


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
