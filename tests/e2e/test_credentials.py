"""Credentials and integrations: each type with its configuration, whose secrets are encrypted and never shown."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.certificates import issue
from tests.e2e.conftest import Server
from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.connections.credentials.configs import SECRETS, CredentialType
from trunkline.actors.connections.integrations.resource import IntegrationType
from trunkline.actors.core.records import records
from trunkline.store.directory import data_file
from trunkline.store.keyring import sealed_values

PLANTED = "Planted-secret-7"
Config = dict[str, Any]


@cache
def rsa_pem() -> str:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


SSH_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SSH_TEXT = SSH_KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
SSH_PUBLIC = SSH_KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
SERVICE = {"type": "service_account", "project_id": "p"}


@cache
def credential_configs() -> dict[str, tuple[Config, Config]]:
    """By type: a configuration, and what is shown of it."""
    pair = issue("barn")
    return {
        "aws": (
            {"accessKeyId": "A" * 16, "secretAccessKey": PLANTED, "region": "eu"},
            {"accessKeyId": "A" * 16, "region": "eu"},
        ),
        "azure": ({"account": "a", "accountKey": PLANTED}, {"account": "a"}),
        "gcp": (
            {"keyJson": json.dumps({**SERVICE, "private_key": PLANTED})},
            {"keyMetaJson": json.dumps(SERVICE)},
        ),
        "http": (
            {"uriMatch": "https://api.example.com", "authMethod": "header", "secretValue": PLANTED},
            {"uriMatch": "https://api.example.com", "authMethod": "header", "publicValue": ""},
        ),
        "sendgrid": ({"apiKey": PLANTED}, {}),
        "twilio": (
            {"accountSid": "acct", "apiKeySid": "skey", "apiKeySecret": PLANTED},
            {"accountSid": "acct", "apiKeySid": "skey"},
        ),
        "loggly": ({"customerToken": PLANTED}, {}),
        "jwt": ({"algorithm": "HS256", "secret": PLANTED}, {"algorithm": "HS256"}),
        "whatsapp": ({"accessToken": PLANTED, "fromNumberId": "1"}, {"fromNumberId": "1"}),
        "sql": (
            {"system": "pg", "host": "db", "port": None, "username": "u", "password": PLANTED,
             "disableSSLVerification": True},
            {"system": "pg", "host": "db", "username": "u", "disableSSLVerification": True},
        ),
        "mongodb": ({"connectionUri": f"mongodb://u:{PLANTED}@db"}, {}),
        "mailgun": ({"apiKey": PLANTED}, {}),
        "snowflake": (
            {"host": "h", "username": "u", "privateKey": f"{PLANTED}\n{rsa_pem()}"},
            {"host": "h", "username": "u"},
        ),
        "git": (
            {"type": "http-password", "cloneUrl": "https://git", "username": "u", "secretValue": PLANTED},
            {"type": "http-password", "cloneUrl": "https://git", "username": "u"},
        ),
        "datadog": ({"secretValue": PLANTED, "site": "eu"}, {"site": "eu"}),
        "certificateKeyPair": (
            {"certificate": pair.pem, "privateKey": f"{PLANTED}\n{pair.key_pem}"},
            {"certificate": pair.pem},
        ),
    }  # fmt: skip


INTEGRATIONS: dict[str, tuple[Config, Config]] = {
    "azureEventHub": (
        {"hubName": "h", "consumerGroup": "g", "connectionString": PLANTED},
        {"hubName": "h", "consumerGroup": "g"},
    ),
    "googlePubSub": ({"projectId": "p", "keyJson": PLANTED}, {"projectId": "p"}),
    "mqtt": (
        {"protocol": "mqtts", "host": "h", "port": 8883, "username": "u", "password": PLANTED,
         "privateKey": PLANTED, "clean": False},
        {"protocol": "mqtts", "host": "h", "port": 8883, "username": "u", "clean": False},
    ),
    "particle": ({"accessToken": PLANTED, "productSlugOrId": "p"}, {"productSlugOrId": "p"}),
    "sqs": (
        {"queueUrl": "https://q", "accessKeyId": "abcd", "secretAccessKey": PLANTED, "region": "eu-1"},
        {"queueUrl": "https://q", "accessKeyId": "abcd", "region": "eu-1"},
    ),
    "websocket": (
        {"url": "wss://h", "password": PLANTED, "headers": [{"headerKey": "k", "headerValue": PLANTED}] * 2},
        {"url": "wss://h", "headers": [{"headerKey": "k"}] * 2},
    ),
}  # fmt: skip
"""By type: a configuration, and what is shown of it."""


async def credential(server: Server, application: str, type: str, **config: Any) -> Any:
    given, _ = credential_configs()[type]
    body = {"name": type, "type": type, f"{type}Config": {**given, **config}}
    return await server.call("POST", f"{application}/credentials", body, status=201)


def sealed(server: Server, kind: str, record: dict[str, Any]) -> dict[str, str]:
    """The secrets of a record as the server would use them, by their paths."""
    with server.system.store.snapshot() as snapshot:
        parent, id = bytes.fromhex(record["applicationId"]), bytes.fromhex(record["id"])
        found = records.find(snapshot, RESOURCES[kind].kind, parent, id)
    assert found is not None
    keyring = server.system.store.keyring
    return {
        each.field: keyring.unseal(each.value, kind=kind, id=id, field=each.field)
        for each in sealed_values(found.doc)
    }


async def test_every_type_of_credential_keeps_its_secret_for_itself(server: Server) -> None:
    application = await server.application()
    path, configs = f"{application}/credentials", credential_configs()
    assert set(configs) == set(get_args(CredentialType))
    answers: list[Any] = []
    paths: set[str] = set()
    for type, (given, shown) in configs.items():
        made = await credential(server, application, type)
        assert shown == {name: made[f"{type}Config"].get(name) for name in shown}, type
        assert (made["enabled"], made["type"], made["createdByType"]) == (True, type, "user")
        renamed = await server.call("PATCH", f"{path}/{made['id']}", {"name": f"my {type}", "enabled": False})
        assert renamed[f"{type}Config"] == made[f"{type}Config"]
        answers += [made, renamed]
        opened = sealed(server, "credential", made)
        assert opened.keys() <= SECRETS, type
        assert all(given[path.partition(".")[2]] == secret for path, secret in opened.items())
        assert any(PLANTED in secret for secret in opened.values()), type
        paths |= opened.keys()
    assert paths == SECRETS
    answers.append(await server.call("GET", path))
    assert PLANTED not in json.dumps(answers)
    assert "PRIVATE" not in json.dumps(answers)
    assert PLANTED.encode() not in data_file(server.system.store.directory.path).read_bytes()


async def test_a_secret_is_replaced_and_other_fields_are_changed_one_by_one(server: Server) -> None:
    application = await server.application()
    made = await credential(server, application, "sql", port=5432)
    each = f"{application}/credentials/{made['id']}"
    changed = await server.call("PATCH", each, {"sqlConfig": {"host": "db2", "port": None}})
    assert changed["sqlConfig"] == {
        "system": "pg", "host": "db2", "username": "u", "disableSSLVerification": True,
    }  # fmt: skip
    assert sealed(server, "credential", made) == {"sqlConfig.password": PLANTED}
    await server.call("PATCH", each, {"sqlConfig": {"password": "another"}})
    assert sealed(server, "credential", made) == {"sqlConfig.password": "another"}


async def test_private_keys_are_made_and_their_public_keys_shown(server: Server) -> None:
    application = await server.application()
    snowflake = await credential(server, application, "snowflake")
    assert snowflake["snowflakeConfig"]["publicKey"].startswith("-----BEGIN PUBLIC KEY-----")
    each = f"{application}/credentials/{snowflake['id']}"
    changed = await server.call("PATCH", each, {"snowflakeConfig": {"generatePrivateKey": True}})
    assert changed["snowflakeConfig"]["publicKey"] != snowflake["snowflakeConfig"]["publicKey"]
    assert "generatePrivateKey" not in changed["snowflakeConfig"]
    (made_key,) = sealed(server, "credential", snowflake).values()
    assert "-----BEGIN PRIVATE KEY-----" in made_key

    git = {"type": "ssh-key", "cloneUrl": "git@git"}
    body = {"name": "git", "type": "git", "gitConfig": {**git, "secretValue": SSH_TEXT}}
    made = await server.call("POST", f"{application}/credentials", body, status=201)
    assert made["gitConfig"] == {**git, "publicKey": SSH_PUBLIC}
    each = f"{application}/credentials/{made['id']}"
    changed = await server.call("PATCH", each, {"gitConfig": {"generatePrivateKey": True}})
    assert changed["gitConfig"]["publicKey"].startswith("ssh-ed25519 ")
    assert changed["gitConfig"]["publicKey"] != SSH_PUBLIC
    password = {"type": "http-password", "secretValue": "pass"}
    changed = await server.call("PATCH", each, {"gitConfig": password})
    assert "publicKey" not in changed["gitConfig"]
    assert sealed(server, "credential", made) == {"gitConfig.secretValue": "pass"}
    refusal = await server.call("PATCH", each, {"gitConfig": {"type": "ssh-key"}}, status=400)
    assert refusal["message"].startswith("gitConfig.secretValue: is a password")


def http(**config: Any) -> Config:
    """A credential with the secret in a header."""
    given = {
        "uriMatch": "https://a.example",
        "authMethod": "header",
        "publicValue": "X-Key",
        "secretValue": "s",
    }
    return {"type": "http", "httpConfig": given | config}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "aws"}, "awsConfig: a credential of the type aws needs it"),
        ({"type": "loggly", "sendgridConfig": {"apiKey": PLANTED}}, "sendgridConfig: belongs to another type"),
        ({"type": "sendgrid", "sendgridConfig": {}}, "sendgridConfig.apiKey: is missing"),
        ({"type": "gcp", "gcpConfig": {"keyJson": f'{{"a": "{PLANTED}"}}'}}, "gcpConfig.keyJson: give the JSON"),
        ({"type": "gcp", "gcpConfig": {"keyJson": "[" * 8000}}, "gcpConfig.keyJson: give the JSON"),
        (
            {"type": "snowflake", "snowflakeConfig": {"host": "h", "username": "u"}},
            "snowflakeConfig.privateKey: give it, or generatePrivateKey",
        ),
        (
            {"type": "snowflake", "snowflakeConfig": {"host": "h", "username": "u", "privateKey": PLANTED}},
            "snowflakeConfig.privateKey: cannot be read as a private key",
        ),
        (
            {"type": "git", "gitConfig": {"type": "ssh-key", "cloneUrl": "git@git", "secretValue": PLANTED,
                                          "generatePrivateKey": True}},
            "gitConfig.secretValue: cannot be given together with generatePrivateKey",
        ),
        (
            {"type": "git", "gitConfig": {"type": "http-password", "cloneUrl": "git@git",
                                          "generatePrivateKey": True}},
            "gitConfig.generatePrivateKey: needs the type ssh-key",
        ),
        (
            {"type": "certificateKeyPair",
             "certificateKeyPairConfig": {"certificate": issue("a").pem, "privateKey": issue("b").key_pem}},
            "certificateKeyPairConfig.privateKey: is not the key of the certificate",
        ),
        (
            {"type": "certificateKeyPair",
             "certificateKeyPairConfig": {"certificate": issue("a").pem, "privateKey": SSH_TEXT}},
            "certificateKeyPairConfig.privateKey: cannot be read as a private key; give PEM text",
        ),
        (http(uriMatch="ftp://a.b.c/"), "httpConfig.uriMatch: must begin with http:// or https://"),
        (http(uriMatch="https://"), "httpConfig.uriMatch: must begin with http:// or https:// and name a host"),
        (http(uriMatch="https://u:p@a.b"), "httpConfig.uriMatch: must not contain a user name"),
        (http(uriMatch="http://*/"), "httpConfig.uriMatch: has *, which stands for nothing here"),
        (http(publicValue="a\r\nb"), "httpConfig.publicValue: is not a valid name of a header"),
        (http(publicValue="content-length"), "httpConfig.publicValue: content-length belongs to the request"),
        (http(publicValue="Host "), "httpConfig.publicValue: Host belongs to the request, which has its own"),
        (http(secretValue=f"a\r\n{PLANTED}"), "httpConfig.secretValue: has a line break"),
    ],
)  # fmt: skip
async def test_a_credential_that_does_not_fit_is_400(server: Server, body: Config, said: str) -> None:
    path = f"{await server.application()}/credentials"
    refusal = await server.call("POST", path, {"name": "c", **body}, status=400)
    assert refusal["message"].startswith(said), refusal
    assert PLANTED not in refusal["message"]
    assert (await server.call("GET", path))["totalCount"] == 0


async def test_what_is_named_of_a_header_is_for_headers_alone(server: Server) -> None:
    path = f"{await server.application()}/credentials"
    body = http(authMethod="basicAuth", publicValue="ada b", secretValue="a\nb")
    made = await server.call("POST", path, {"name": "c", **body}, status=201)
    change = {"httpConfig": {"authMethod": "header"}}
    refusal = await server.call("PATCH", f"{path}/{made['id']}", change, status=400)
    assert refusal["message"].startswith("httpConfig.publicValue: is not a valid name of a header")


async def test_a_name_of_a_credential_is_used_once(server: Server) -> None:
    application = await server.application()
    first = await credential(server, application, "sendgrid")
    second = await credential(server, application, "mailgun")
    path = f"{application}/credentials"
    refusal = await server.call("PATCH", f"{path}/{second['id']}", {"name": "sendgrid"}, status=400)
    assert refusal["message"].startswith(f"name: the credential {first['id']} has it already")
    await server.call("DELETE", f"{path}/{first['id']}")
    await server.call("PATCH", f"{path}/{second['id']}", {"name": "sendgrid"})


# Integrations.


async def test_every_type_of_integration_keeps_its_secrets_for_itself(server: Server) -> None:
    path = f"{await server.application()}/integrations"
    assert set(INTEGRATIONS) == set(get_args(IntegrationType))
    answers, paths = [], set()
    for type, (given, shown) in INTEGRATIONS.items():
        body = {"name": type, "integrationType": type, "topics": ["a", "b"], f"{type}Config": given}
        made = await server.call("POST", path, {**body, "enabled": False}, status=201)
        assert (made[f"{type}Config"], made["topics"], made["enabled"]) == (shown, ["a", "b"], False), type
        each = f"{path}/{made['id']}"
        changed = await server.call("PATCH", each, {"name": "i", f"{type}Config": {}})
        assert (changed[f"{type}Config"], changed["enabled"]) == (shown, False)
        opened = sealed(server, "integration", made)
        assert set(opened.values()) == {PLANTED}
        paths |= {".".join(step for step in path.split(".") if not step.isdigit()) for path in opened}
        answers += [made, changed]
    assert paths == RESOURCES["integration"].sealed - {"websocketConfig.privateKey"}
    answers.append(await server.call("GET", path))
    assert PLANTED not in json.dumps(answers)


async def test_null_removes_a_secret_of_an_integration(server: Server) -> None:
    path = f"{await server.application()}/integrations"
    config, shown = INTEGRATIONS["mqtt"]
    made = await server.call(
        "POST", path, {"name": "i", "integrationType": "mqtt", "mqttConfig": config, "enabled": False}
    )
    change = {"mqttConfig": {"password": None, "username": None}}
    changed = await server.call("PATCH", f"{path}/{made['id']}", change)
    assert changed["mqttConfig"] == {name: value for name, value in shown.items() if name != "username"}
    assert sealed(server, "integration", made) == {"mqttConfig.privateKey": PLANTED}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"integrationType": "mqtt"}, "mqttConfig: an integration of the type mqtt needs it"),
        ({"integrationType": "sqs", "mqttConfig": {}}, "mqttConfig: belongs to another type"),
        (
            {"integrationType": "mqtt", "mqttConfig": {"host": "h", "port": 1}},
            "mqttConfig: needs protocol",
        ),
        (
            {"integrationType": "googlePubSub", "topics": ["a", "a"]},
            "topics: a topic appears twice in the list",
        ),
        (
            {"integrationType": "googlePubSub", "credentialName": "none"},
            "credentialName: the application has no",
        ),
        (
            {"integrationType": "googlePubSub", "credentialName": "sendgrid"},
            "credentialName: sendgrid is for",
        ),
        (
            {
                "integrationType": "azureEventHub",
                "azureEventHubConfig": {"hubName": "h", "consumerGroup": "g"},
            },
            "azureEventHubConfig: needs either connectionString, or hostName",
        ),
    ],
)
async def test_an_integration_that_does_not_fit_is_400(server: Server, body: Config, said: str) -> None:
    application = await server.application()
    await credential(server, application, "sendgrid")
    refusal = await server.call("POST", f"{application}/integrations", {"name": "i", **body}, status=400)
    assert refusal["message"].startswith(said), refusal
    assert (await server.call("GET", f"{application}/integrations"))["totalCount"] == 0
