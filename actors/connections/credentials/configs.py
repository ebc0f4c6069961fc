"""The configurations of credentials, by the type of the service. Owns the fields and which of them are secret.

Each type has a struct for new credentials, one for changes, which follows from it, and one for what is shown.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from trunkline.actors.access.certificates import CertificateInfo
from trunkline.actors.core.values.changes import Removable, changes_of
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


class AwsPost(Body, frozen=True):
    """An account of Amazon Web Services."""

    access_key_id: _AwsKeyId
    secret_access_key: _Secret128
    region: _Text128


@changes_of(AwsPost)
class AwsPatch(Body, frozen=True):
    """Changes of an account of Amazon Web Services."""


class AwsView(View, frozen=True):
    """An account of Amazon Web Services, without its secret."""

    access_key_id: str
    region: str


class AzurePost(Body, frozen=True, kw_only=True):
    """An account of Azure."""

    account: Removable[_Optional128] | UnsetType = UNSET
    account_key: _Secret128


@changes_of(AzurePost)
class AzurePatch(Body, frozen=True):
    """Changes of an account of Azure; null removes a field."""


class AzureView(View, frozen=True):
    """An account of Azure, without its secret."""

    account: str | None = None


class GcpPost(Body, frozen=True):
    """A service account of Google Cloud."""

    key_json: _KeyJson


@changes_of(GcpPost)
class GcpPatch(Body, frozen=True):
    """Changes of a service account of Google Cloud."""


class GcpView(View, frozen=True):
    """A service account of Google Cloud, without its secret."""

    key_meta_json: str


class HttpPost(Body, frozen=True, kw_only=True):
    """How HTTP calls authenticate."""

    uri_match: _UriMatch
    auth_method: _AuthMethod
    public_value: _Pem | UnsetType = UNSET
    secret_value: _Pem


@changes_of(HttpPost)
class HttpPatch(Body, frozen=True):
    """Changes of how HTTP calls authenticate."""


class HttpView(View, frozen=True):
    """How HTTP calls authenticate, without the secret."""

    uri_match: str
    auth_method: _AuthMethod
    public_value: str


class ApiKeyPost(Body, frozen=True):
    """An API key."""

    api_key: _Secret128


@changes_of(ApiKeyPost)
class ApiKeyPatch(Body, frozen=True):
    """Changes of an API key."""


class OnlySecretView(View, frozen=True):
    """A configuration that consists of a secret, so nothing of it is shown."""


class TwilioPost(Body, frozen=True):
    """An account of Twilio."""

    account_sid: _Secret128
    api_key_sid: _Secret128
    api_key_secret: _Secret128


@changes_of(TwilioPost)
class TwilioPatch(Body, frozen=True):
    """Changes of an account of Twilio."""


class TwilioView(View, frozen=True):
    """An account of Twilio, without its secret."""

    account_sid: str
    api_key_sid: str


class LogglyPost(Body, frozen=True):
    """An account of Loggly."""

    customer_token: _Text128


@changes_of(LogglyPost)
class LogglyPatch(Body, frozen=True):
    """Changes of an account of Loggly."""


class JwtPost(Body, frozen=True, kw_only=True):
    """How JSON Web Tokens are signed."""

    issuer: Removable[_Issuer] | UnsetType = UNSET
    algorithm: _Algorithm
    secret: _JwtSecret


@changes_of(JwtPost)
class JwtPatch(Body, frozen=True):
    """Changes of how JSON Web Tokens are signed; null removes the issuer."""


class JwtView(View, frozen=True):
    """How JSON Web Tokens are signed, without the secret."""

    algorithm: _Algorithm
    issuer: str | None = None


class WhatsappPost(Body, frozen=True):
    """An account of WhatsApp."""

    access_token: _Text1024
    from_number_id: _Text128


@changes_of(WhatsappPost)
class WhatsappPatch(Body, frozen=True):
    """Changes of an account of WhatsApp."""


class WhatsappView(View, frozen=True):
    """An account of WhatsApp, without its secret."""

    from_number_id: str


class SqlPost(Body, frozen=True, kw_only=True):
    """A login to an SQL database."""

    system: _SqlSystem
    host: _Text256
    port: _Port | UnsetType | None = UNSET
    username: _Text256
    password: _Text256
    secure_connection: bool | UnsetType = UNSET
    ca_certificate: Removable[_Pem] | UnsetType = UNSET
    disable_ssl_verification: bool | UnsetType = field(default=UNSET, name="disableSSLVerification")


@changes_of(SqlPost)
class SqlPatch(Body, frozen=True):
    """Changes of a login to an SQL database; null removes a field."""


class SqlView(View, frozen=True):
    """A login to an SQL database, without the password."""

    system: _SqlSystem
    host: str
    username: str
    port: int | None = None
    secure_connection: bool | None = None
    ca_certificate: str | None = None
    disable_ssl_verification: bool | None = field(default=None, name="disableSSLVerification")


class MongodbPost(Body, frozen=True):
    """A login to MongoDB."""

    connection_uri: _MongoUri


@changes_of(MongodbPost)
class MongodbPatch(Body, frozen=True):
    """Changes of a login to MongoDB."""


class SnowflakePost(Body, frozen=True):
    """A login to Snowflake; it needs `privateKey`, or `generatePrivateKey`."""

    host: _Text128
    username: _Text128
    private_key: _Pem | UnsetType = UNSET
    generate_private_key: bool | UnsetType = UNSET


@changes_of(SnowflakePost)
class SnowflakePatch(Body, frozen=True):
    """Changes of a login to Snowflake."""

    private_key: _Pem | UnsetType = UNSET
    generate_private_key: bool | UnsetType = UNSET


class SnowflakeView(View, frozen=True):
    """A login to Snowflake, without the private key."""

    host: str
    username: str
    public_key: str


class GitPost(Body, frozen=True, kw_only=True):
    """A login to a git repository."""

    type: _GitType
    clone_url: _CloneUrl
    username: Removable[_Optional128] | UnsetType = UNSET
    committer_name: Removable[_Optional128] | UnsetType = UNSET
    committer_email: Removable[_Optional128] | UnsetType = UNSET
    generate_private_key: bool | UnsetType = UNSET
    secret_value: Removable[_Pem] | UnsetType = UNSET


@changes_of(GitPost)
class GitPatch(Body, frozen=True):
    """Changes of a login to a git repository; null removes a field."""

    generate_private_key: bool | UnsetType = UNSET
    secret_value: _Pem | UnsetType | None = UNSET


class GitView(View, frozen=True):
    """A login to a git repository, without its secret."""

    type: _GitType
    clone_url: str
    public_key: str | None = None
    username: str | None = None
    committer_name: str | None = None
    committer_email: str | None = None


class DatadogPost(Body, frozen=True):
    """An account of Datadog."""

    secret_value: _DatadogKey
    site: Removable[_Text128] | UnsetType = UNSET


@changes_of(DatadogPost)
class DatadogPatch(Body, frozen=True):
    """Changes of an account of Datadog; null removes the site."""


class DatadogView(View, frozen=True):
    """An account of Datadog, without its secret."""

    site: str | None = None


class CertificateKeyPairPost(Body, frozen=True):
    """A certificate and its private key."""

    certificate: _Certificate
    private_key: _Pem


@changes_of(CertificateKeyPairPost)
class CertificateKeyPairPatch(Body, frozen=True):
    """A certificate and its private key, which are changed together."""


class CertificateKeyPairView(View, frozen=True):
    """A certificate, and what it says."""

    certificate: str
    info: CertificateInfo
