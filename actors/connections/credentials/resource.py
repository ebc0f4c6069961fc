"""Credentials: secrets of other services, under a name by which workflows and integrations use them.

A credential has a type and the configuration of that type. The secret of the configuration is encrypted in the store
and never shown; what follows from it and is public (the public key of a private key) is.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from trunkline.actors.connections.credentials import configs
from trunkline.actors.connections.credentials.configs import CredentialType
from trunkline.actors.core.outgoing.http_calls import check_url
from trunkline.actors.core.records.kind import GIVES_ACCESS, Doc, Kind
from trunkline.actors.core.records.page import Page
from trunkline.actors.core.records.resource import Change, Resource
from trunkline.actors.core.runtime.threads import NEW_KEYS, at_low_priority, in_thread
from trunkline.actors.core.values.certificates import describe, read_certificates
from trunkline.actors.core.values.changes import Fixed, changes_of
from trunkline.actors.core.values.errors import Invalid
from trunkline.actors.core.values.header_texts import HEADER_NAME, OF_CONNECTIONS, has_control
from trunkline.actors.core.values.private_keys import (
    new_rsa_key,
    new_ssh_key,
    public_pem,
    public_ssh,
    read_private_key,
)
from trunkline.actors.core.values.structs import Body
from trunkline.actors.core.values.terms import Description, Id, Name, RecordView, SortDirection

_Maker = Literal["flow", "user", "apiToken"]


class CredentialPost(Body, frozen=True):
    """A new credential. It needs the configuration of its type and no other."""

    name: Name
    type: Fixed[CredentialType]
    description: Description | UnsetType = UNSET
    enabled: bool = True
    aws_config: configs.AwsPost | UnsetType = UNSET
    azure_config: configs.AzurePost | UnsetType = UNSET
    gcp_config: configs.GcpPost | UnsetType = UNSET
    http_config: configs.HttpPost | UnsetType = UNSET
    sendgrid_config: configs.ApiKeyPost | UnsetType = UNSET
    twilio_config: configs.TwilioPost | UnsetType = UNSET
    loggly_config: configs.LogglyPost | UnsetType = UNSET
    jwt_config: configs.JwtPost | UnsetType = UNSET
    whatsapp_config: configs.WhatsappPost | UnsetType = UNSET
    sql_config: configs.SqlPost | UnsetType = UNSET
    mongodb_config: configs.MongodbPost | UnsetType = UNSET
    mailgun_config: configs.ApiKeyPost | UnsetType = UNSET
    snowflake_config: configs.SnowflakePost | UnsetType = UNSET
    git_config: configs.GitPost | UnsetType = UNSET
    datadog_config: configs.DatadogPost | UnsetType = UNSET
    certificate_key_pair_config: configs.CertificateKeyPairPost | UnsetType = UNSET


@changes_of(CredentialPost)
class CredentialPatch(Body, frozen=True):
    """Changes of a credential; omitted fields stay as they are, also within the configuration."""

    snowflake_config: configs.SnowflakePatch | UnsetType = UNSET
    git_config: configs.GitPatch | UnsetType = UNSET


class CredentialPage(Page, frozen=True):
    """A page of credentials."""

    sort_field: Literal["name", "type", "creationDate", "lastUpdated"] = "creationDate"
    sort_direction: SortDirection = "desc"
    filter_field: Literal["name", "type"] | None = None


class CredentialView(RecordView, frozen=True, kw_only=True):
    """A credential, without its secret."""

    credential_id: Id
    application_id: Id
    name: str
    service: CredentialType = msgspec.field(name="type")  # `type` is the name of `_type` in the base
    enabled: bool
    created_by_id: Id
    created_by_type: _Maker
    last_updated_by_id: Id
    last_updated_by_type: _Maker
    description: str | None = None
    aws_config: configs.AwsView | None = None
    azure_config: configs.AzureView | None = None
    gcp_config: configs.GcpView | None = None
    http_config: configs.HttpView | None = None
    sendgrid_config: configs.OnlySecretView | None = None
    twilio_config: configs.TwilioView | None = None
    loggly_config: configs.OnlySecretView | None = None
    jwt_config: configs.JwtView | None = None
    whatsapp_config: configs.WhatsappView | None = None
    sql_config: configs.SqlView | None = None
    mongodb_config: configs.OnlySecretView | None = None
    mailgun_config: configs.OnlySecretView | None = None
    snowflake_config: configs.SnowflakeView | None = None
    git_config: configs.GitView | None = None
    datadog_config: configs.DatadogView | None = None
    certificate_key_pair_config: configs.CertificateKeyPairView | None = None


CREDENTIAL: Final = Kind(
    name="credential",
    noun="credential",
    indexes=("name", "type", "creationDate", "lastUpdated"),
    unique=("name",),
    counted_as="credentialCount",
    audited_as="Credential",
    not_portable=GIVES_ACCESS,
)

_CONFIGS: Final[dict[str, str]] = {each: f"{each}Config" for each in get_args(CredentialType)}
"""The name of the configuration of each type."""


async def _generate(body: CredentialPost | CredentialPatch) -> CredentialPost | CredentialPatch:
    """Make the private key that a configuration asks for, before the application sees the body."""
    snowflake, git = body.snowflake_config, body.git_config
    if snowflake is not UNSET and snowflake.generate_private_key is True:
        _check_no_key(snowflake.private_key, "snowflakeConfig.privateKey")
        private_key = await in_thread(NEW_KEYS, at_low_priority, new_rsa_key)
        made = msgspec.structs.replace(snowflake, private_key=private_key)
        body = msgspec.structs.replace(body, snowflake_config=made)
    if git is not UNSET and git.generate_private_key is True:
        _check_no_key(git.secret_value, "gitConfig.secretValue")
        body = msgspec.structs.replace(
            body, git_config=msgspec.structs.replace(git, secret_value=new_ssh_key())
        )
    return body


def _check_no_key(given: object, field: str) -> None:
    if given is not UNSET:
        raise Invalid(f"{field}: cannot be given together with generatePrivateKey; leave one of them out.")


def _check(change: Change) -> None:
    """Check that the configuration is that of the type and complete, and add what is public of its secret."""
    new, named = change.new, change.named
    type = new["type"]
    own = _CONFIGS[type]
    for other in _CONFIGS.values():
        if other in named and other != own:
            raise Invalid(f"{other}: belongs to another type of credential; for {type} give {own}.")
    if change.old is None and own not in named:
        raise Invalid(f"{own}: a credential of the type {type} needs it.")
    if own not in named:
        return
    config = {name: value for name, value in new[own].items() if value is not None}
    config.pop("generatePrivateKey", None)
    complete = _COMPLETE.get(type)
    if complete is not None:
        complete(config, named[own])
    new[own] = config


def _complete_gcp(config: Doc, named: Doc) -> None:
    """Show the account without its private key."""
    if "keyJson" not in named:
        return
    try:
        account: Any = json.loads(named["keyJson"])
    except (ValueError, RecursionError):
        account = None
    if not isinstance(account, dict) or not isinstance(account.pop("private_key", None), str):
        raise Invalid("gcpConfig.keyJson: give the JSON text of a service account, which has a private_key.")
    config["keyMetaJson"] = json.dumps(account, ensure_ascii=False)


def _complete_http(config: Doc, named: Doc) -> None:
    """Check what the requests of workflows would be made of."""
    public = config.setdefault("publicValue", "")
    if "uriMatch" in named:
        check_url(named["uriMatch"], private=True, field="httpConfig.uriMatch")
        if "*" in named["uriMatch"]:
            raise Invalid(
                "httpConfig.uriMatch: has *, which stands for nothing here; give the beginning of the URLs, such as "
                "https://api.example.com/v1."
            )
    if config["authMethod"] == "header":
        if public.strip() and not HEADER_NAME.fullmatch(public.strip()):
            raise Invalid(
                "httpConfig.publicValue: is not a valid name of a header; give one such as X-Api-Key."
            )
        if public.strip().lower() in OF_CONNECTIONS | {"host"}:
            raise Invalid(
                f"httpConfig.publicValue: {public.strip()} belongs to the request, which has its own; give the name of "
                "another header, such as X-Api-Key."
            )
        if has_control(named.get("secretValue", "").strip()):
            raise Invalid(
                "httpConfig.secretValue: has a line break or another control character, which no header may have; "
                "leave it out."
            )


def _complete_snowflake(config: Doc, named: Doc) -> None:
    """Show the public key."""
    if "privateKey" in named:
        key = read_private_key(named["privateKey"], field="snowflakeConfig.privateKey")
        config["publicKey"] = public_pem(key)
    if "privateKey" not in config:
        raise Invalid("snowflakeConfig.privateKey: give it, or generatePrivateKey as true.")


def _complete_git(config: Doc, named: Doc) -> None:
    """Show the public key of an SSH key."""
    field = "gitConfig.secretValue"
    secret = named.get("secretValue")
    if "type" in named and "publicKey" in config and config["type"] != "ssh-key" and secret is None:
        raise Invalid(f"{field}: is a private key; give the password for the type http-password.")
    if config["type"] == "http-password" and named.get("generatePrivateKey"):
        raise Invalid("gitConfig.generatePrivateKey: needs the type ssh-key.")
    if "secretValue" in named or config["type"] != "ssh-key":
        config.pop("publicKey", None)
    if config["type"] == "ssh-key" and secret is not None:
        config["publicKey"] = public_ssh(read_private_key(secret, field=field), field=field)
    if config["type"] == "ssh-key" and "secretValue" in config and "publicKey" not in config:
        raise Invalid(f"{field}: is a password; give a private key for the type ssh-key.")


def _complete_certificate(config: Doc, named: Doc) -> None:
    """Read the certificate, and check that the private key belongs to it."""
    at = "certificateKeyPairConfig"
    if not {"certificate", "privateKey"} <= named.keys():
        raise Invalid(f"{at}: give certificate and privateKey together.")
    config["certificate"], chain = read_certificates(named["certificate"], field=f"{at}.certificate")
    key = read_private_key(named["privateKey"], field=f"{at}.privateKey", only_pem=True)
    if key.public_key() != chain[0].public_key():
        raise Invalid(f"{at}.privateKey: is not the key of the certificate; give the pair.")
    config["info"] = describe(chain[0])


_COMPLETE: Final = {
    "gcp": _complete_gcp,
    "http": _complete_http,
    "snowflake": _complete_snowflake,
    "git": _complete_git,
    "certificateKeyPair": _complete_certificate,
}
"""By type: adds to a configuration what is shown of its secret. Takes what will be stored, and what the call gives."""


CREDENTIALS: Final = Resource(
    name="credential",
    kind=CREDENTIAL,
    post=CredentialPost,
    patch=CredentialPatch,
    page=CredentialPage,
    view=CredentialView,
    sealed=configs.SECRETS,
    check=_check,
    prepare=_generate,
)
