"""The configurations of credentials, by the type of the service. Owns the fields and which of them are secret.

Each type has a struct for changes, one for new credentials, which names what is required, and one for what is shown.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.access.certificates import CertificateInfo
from trunkline.actors.core.values.structs import Body, View

_Text128 = Annotated[str, Meta(min_length=1, max_length=128)]
_Optional128 = Annotated[str, Meta(max_length=128)]
_Secret128 = Annotated[str, Meta(min_length=4, max_length=128)]
_Text256 = Annotated[str, Meta(min_length=1, max_length=256)]
_Text1024 = Annotated[str, Meta(min_length=1, max_length=1024)]
_Issuer = Annotated[str, Meta(max_length=1024)]
_Pem = Annotated[str, Meta(max_length=8196)]
_Certificate = Annotated[str, Meta(max_length=8192)]
_KeyJson = Annotated[str, Meta(min_length=1, max_length=8192)]
_AwsKeyId = Annotated[str, Meta(min_length=16, max_length=128)]
_UriMatch = Annotated[str, Meta(min_length=8, max_length=1024)]
_JwtSecret = Annotated[str, Meta(min_length=1, max_length=4096)]
_MongoUri = Annotated[str, Meta(min_length=1, max_length=2048)]
_DatadogKey = Annotated[str, Meta(max_length=256)]
_CloneUrl = Annotated[str, Meta(min_length=5, max_length=1024)]
_Port = Annotated[int, Meta(ge=1, le=65_535)]
_AuthMethod = Literal["header", "queryParam", "basicAuth", "clientCertificate"]
_Algorithm = Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512"]
_SqlSystem = Literal["mssql", "mysql", "pg"]
_GitType = Literal["ssh-key", "http-password"]

CredentialType = Literal[
    "aws", "azure", "gcp", "http", "sendgrid", "twilio", "loggly", "jwt", "whatsapp", "sql", "mongodb", "mailgun",
    "snowflake", "git", "datadog", "certificateKeyPair",
]  # fmt: skip

SECRETS: Final = frozenset(
    {
        "awsConfig.secretAccessKey",
        "azureConfig.accountKey",
        "gcpConfig.keyJson",
        "httpConfig.secretValue",
        "sendgridConfig.apiKey",
        "twilioConfig.apiKeySecret",
        "logglyConfig.customerToken",
        "jwtConfig.secret",
        "whatsappConfig.accessToken",
        "sqlConfig.password",
        "mongodbConfig.connectionUri",
        "mailgunConfig.apiKey",
        "snowflakeConfig.privateKey",
        "gitConfig.secretValue",
        "datadogConfig.secretValue",
        "certificateKeyPairConfig.privateKey",
    }
)
"""The paths of the secrets. A configuration has exactly one."""


class AwsPatch(Body, frozen=True):
    """Changes of an account of Amazon Web Services."""

    access_key_id: _AwsKeyId | UnsetType = UNSET
    secret_access_key: _Secret128 | UnsetType = UNSET
    region: _Text128 | UnsetType = UNSET


class AwsPost(AwsPatch, frozen=True, kw_only=True):
    """An account of Amazon Web Services."""

    access_key_id: _AwsKeyId
    secret_access_key: _Secret128
    region: _Text128


class AwsView(View, frozen=True):
    """An account of Amazon Web Services, without its secret."""

    access_key_id: str
    region: str


class AzurePatch(Body, frozen=True):
    """Changes of an account of Azure; null removes a field."""

    account: _Optional128 | UnsetType | None = UNSET
    account_key: _Secret128 | UnsetType = UNSET


class AzurePost(AzurePatch, frozen=True, kw_only=True):
    """An account of Azure."""

    account: _Optional128 | UnsetType = UNSET
    account_key: _Secret128


class AzureView(View, frozen=True):
    """An account of Azure, without its secret."""

    account: str | None = None


class GcpPatch(Body, frozen=True):
    """Changes of a service account of Google Cloud."""

    key_json: _KeyJson | UnsetType = UNSET


class GcpPost(GcpPatch, frozen=True, kw_only=True):
    """A service account of Google Cloud."""

    key_json: _KeyJson


class GcpView(View, frozen=True):
    """A service account of Google Cloud, without its secret."""

    key_meta_json: str


class HttpPatch(Body, frozen=True):
    """Changes of how HTTP calls authenticate."""

    uri_match: _UriMatch | UnsetType = UNSET
    auth_method: _AuthMethod | UnsetType = UNSET
    public_value: _Pem | UnsetType = UNSET
    secret_value: _Pem | UnsetType = UNSET


class HttpPost(HttpPatch, frozen=True, kw_only=True):
    """How HTTP calls authenticate."""

    uri_match: _UriMatch
    auth_method: _AuthMethod
    secret_value: _Pem


class HttpView(View, frozen=True):
    """How HTTP calls authenticate, without the secret."""

    uri_match: str
    auth_method: _AuthMethod
    public_value: str


class ApiKeyPatch(Body, frozen=True):
    """Changes of an API key."""

    api_key: _Secret128 | UnsetType = UNSET


class ApiKeyPost(ApiKeyPatch, frozen=True, kw_only=True):
    """An API key."""

    api_key: _Secret128


class OnlySecretView(View, frozen=True):
    """A configuration that consists of a secret, so nothing of it is shown."""


class TwilioPatch(Body, frozen=True):
    """Changes of an account of Twilio."""

    account_sid: _Secret128 | UnsetType = UNSET
    api_key_sid: _Secret128 | UnsetType = UNSET
    api_key_secret: _Secret128 | UnsetType = UNSET


class TwilioPost(TwilioPatch, frozen=True, kw_only=True):
    """An account of Twilio."""

    account_sid: _Secret128
    api_key_sid: _Secret128
    api_key_secret: _Secret128


class TwilioView(View, frozen=True):
    """An account of Twilio, without its secret."""

    account_sid: str
    api_key_sid: str


class LogglyPatch(Body, frozen=True):
    """Changes of an account of Loggly."""

    customer_token: _Text128 | UnsetType = UNSET


class LogglyPost(LogglyPatch, frozen=True, kw_only=True):
    """An account of Loggly."""

    customer_token: _Text128


class JwtPatch(Body, frozen=True):
    """Changes of how JSON Web Tokens are signed; null removes the issuer."""

    issuer: _Issuer | UnsetType | None = UNSET
    algorithm: _Algorithm | UnsetType = UNSET
    secret: _JwtSecret | UnsetType = UNSET


class JwtPost(JwtPatch, frozen=True, kw_only=True):
    """How JSON Web Tokens are signed."""

    issuer: _Issuer | UnsetType = UNSET
    algorithm: _Algorithm
    secret: _JwtSecret


class JwtView(View, frozen=True):
    """How JSON Web Tokens are signed, without the secret."""

    algorithm: _Algorithm
    issuer: str | None = None


class WhatsappPatch(Body, frozen=True):
    """Changes of an account of WhatsApp."""

    access_token: _Text1024 | UnsetType = UNSET
    from_number_id: _Text128 | UnsetType = UNSET


class WhatsappPost(WhatsappPatch, frozen=True, kw_only=True):
    """An account of WhatsApp."""

    access_token: _Text1024
    from_number_id: _Text128


class WhatsappView(View, frozen=True):
    """An account of WhatsApp, without its secret."""

    from_number_id: str


class SqlPatch(Body, frozen=True):
    """Changes of a login to an SQL database; null removes a field."""

    system: _SqlSystem | UnsetType = UNSET
    host: _Text256 | UnsetType = UNSET
    port: _Port | UnsetType | None = UNSET
    username: _Text256 | UnsetType = UNSET
    password: _Text256 | UnsetType = UNSET
    secure_connection: bool | UnsetType = UNSET
    ca_certificate: _Pem | UnsetType | None = UNSET
    disable_ssl_verification: bool | UnsetType = field(default=UNSET, name="disableSSLVerification")


class SqlPost(SqlPatch, frozen=True, kw_only=True):
    """A login to an SQL database."""

    system: _SqlSystem
    host: _Text256
    username: _Text256
    password: _Text256
    ca_certificate: _Pem | UnsetType = UNSET


class SqlView(View, frozen=True):
    """A login to an SQL database, without the password."""

    system: _SqlSystem
    host: str
    username: str
    port: int | None = None
    secure_connection: bool | None = None
    ca_certificate: str | None = None
    disable_ssl_verification: bool | None = field(default=None, name="disableSSLVerification")


class MongodbPatch(Body, frozen=True):
    """Changes of a login to MongoDB."""

    connection_uri: _MongoUri | UnsetType = UNSET


class MongodbPost(MongodbPatch, frozen=True, kw_only=True):
    """A login to MongoDB."""

    connection_uri: _MongoUri


class SnowflakePatch(Body, frozen=True):
    """Changes of a login to Snowflake."""

    host: _Text128 | UnsetType = UNSET
    username: _Text128 | UnsetType = UNSET
    private_key: _Pem | UnsetType = UNSET
    generate_private_key: bool | UnsetType = UNSET


class SnowflakePost(SnowflakePatch, frozen=True, kw_only=True):
    """A login to Snowflake; it needs `privateKey`, or `generatePrivateKey`."""

    host: _Text128
    username: _Text128


class SnowflakeView(View, frozen=True):
    """A login to Snowflake, without the private key."""

    host: str
    username: str
    public_key: str


class GitPatch(Body, frozen=True):
    """Changes of a login to a git repository; null removes a field."""

    type: _GitType | UnsetType = UNSET
    clone_url: _CloneUrl | UnsetType = UNSET
    username: _Optional128 | UnsetType | None = UNSET
    committer_name: _Optional128 | UnsetType | None = UNSET
    committer_email: _Optional128 | UnsetType | None = UNSET
    generate_private_key: bool | UnsetType = UNSET
    secret_value: _Pem | UnsetType | None = UNSET


class GitPost(GitPatch, frozen=True, kw_only=True):
    """A login to a git repository."""

    type: _GitType
    clone_url: _CloneUrl
    username: _Optional128 | UnsetType = UNSET
    committer_name: _Optional128 | UnsetType = UNSET
    committer_email: _Optional128 | UnsetType = UNSET
    secret_value: _Pem | UnsetType = UNSET


class GitView(View, frozen=True):
    """A login to a git repository, without its secret."""

    type: _GitType
    clone_url: str
    public_key: str | None = None
    username: str | None = None
    committer_name: str | None = None
    committer_email: str | None = None


class DatadogPatch(Body, frozen=True):
    """Changes of an account of Datadog; null removes the site."""

    secret_value: _DatadogKey | UnsetType = UNSET
    site: _Text128 | UnsetType | None = UNSET


class DatadogPost(DatadogPatch, frozen=True, kw_only=True):
    """An account of Datadog."""

    secret_value: _DatadogKey
    site: _Text128 | UnsetType = UNSET


class DatadogView(View, frozen=True):
    """An account of Datadog, without its secret."""

    site: str | None = None


class CertificateKeyPairPatch(Body, frozen=True):
    """A certificate and its private key, which are changed together."""

    certificate: _Certificate | UnsetType = UNSET
    private_key: _Pem | UnsetType = UNSET


class CertificateKeyPairPost(CertificateKeyPairPatch, frozen=True, kw_only=True):
    """A certificate and its private key."""

    certificate: _Certificate
    private_key: _Pem


class CertificateKeyPairView(View, frozen=True):
    """A certificate, and what it says."""

    certificate: str
    info: CertificateInfo
