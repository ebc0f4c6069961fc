"""Secrets are shown once, kept as digests or encrypted, and never logged: not by a call, a refusal or a crash.

Secrets of every kind are planted in a server, well and badly. Then everything that it answers, logs and keeps is
searched for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.e2e.conftest import EMAIL, PASSWORD
from tests.e2e.server_process import OWNER, ServerProcess, serving, trunkline
from tests.e2e.test_credentials import INTEGRATIONS, PLANTED, credential_configs

WRONG = "Guessed-horse-77"
CRASHING = "Crashing-horse-66"
PAYLOAD = "the-payload-of-somebody"

# The command line with two bugs: secrets are in every frame of their tracebacks.
FAULTY = """
import argon2
from trunkline.actors.core.records import records
from trunkline.http.cli.main import main

write, verify = records.write, argon2.PasswordHasher.verify

def faulty_write(actor, kind, parent, id, old, new):
    if new.get("name") == "crash":
        raise RuntimeError("a bug")
    return write(actor, kind, parent, id, old, new)

def faulty_verify(self, hash, password):
    if password.startswith("Crash"):
        raise RuntimeError("a bug")
    return verify(self, hash, password)

records.write = faulty_write
argon2.PasswordHasher.verify = faulty_verify
main()
"""


async def use(server: ServerProcess) -> list[str]:
    """Every kind of call that carries a secret, well and badly; returns what must be found nowhere."""
    application = await server.application()
    device = await server.device(application)
    key = await server.call("POST", f"{application}/keys", {})
    token = (await server.call("POST", f"{application}/tokens", {"name": "t"}))["token"]
    mine = (await server.call("POST", "/me/tokens", {"name": "t"}))["token"]
    credentials = {"deviceId": device.rpartition("/")[2], "key": key["key"], "secret": key["secret"]}
    device_token = (await server.call("POST", "/auth/device", credentials, token=""))["token"]
    renewed = (await server.call("GET", "/me/refreshToken"))["token"]

    await server.call("POST", f"{device}/state", {"data": {"label": PAYLOAD}}, token=device_token)
    await server.call("POST", f"{device}/command", {"name": "go", "payload": PAYLOAD}, token=token)
    await server.call("POST", f"{device}/state", {"data": {"temp": PAYLOAD}}, token=mine, status=400)
    login = {"email": EMAIL, "password": WRONG}
    await server.call("POST", "/auth/user", login, token="", status=401)
    await server.call("POST", "/auth/user", login | {"password": [WRONG]}, token="", status=400)
    await server.call("POST", "/auth/device", credentials | {"secret": WRONG}, token="", status=401)
    await server.call("GET", "/me", token=server.token[:-3], status=401)
    await server.call("GET", f"/applications?filterField=name&filter={WRONG}", status=200)
    change = {"password": CRASHING + "-new", "currentCredentials": {"password": WRONG}}
    await server.call("PATCH", "/me", change, status=401)

    await server.call("POST", "/auth/user", login | {"password": CRASHING}, token="", status=500)
    await server.call("POST", f"{application}/keys", {"name": "crash"}, status=500)
    answer = await server.call("POST", f"{application}/tokens", {"name": "crash"}, token=token, status=500)
    assert answer["message"].startswith("The application failed to handle this call")
    # And the server goes on.
    await server.call("GET", "/me", status=200)
    return [
        PASSWORD,
        WRONG,
        CRASHING,
        PAYLOAD,
        key["secret"],
        *(each.rpartition(".")[2] for each in (server.token, token, mine, device_token, renewed)),
    ]


async def plant(server: ServerProcess) -> tuple[list[str], list[str]]:
    """Secrets in records of an organization's application; returns the secrets, and the paths of lists and records."""
    org = await server.call("POST", "/orgs", {"name": "farm"})
    made = await server.call("POST", "/applications", {"name": "house", "orgId": org["id"]})
    application = f"/applications/{made['id']}"
    leaf = trustme.CA().issue_cert("farm.example.com")
    cert, key = leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode()
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("webhooks", {"name": "w", "basicAuthUsername": "u", "basicAuthPassword": PLANTED}),
        ("dashboards", {"name": "d", "password": PLANTED}),
        ("experience/users", {"email": "guest@example.com", "password": PLANTED}),
        (
            "experience/domains",
            {"domainName": "farm.example.com", "sslCert": cert, "sslKey": key},
        ),
    ]
    bodies += [
        ("credentials", {"name": kind, "type": kind, f"{kind}Config": config})
        for kind, (config, _) in credential_configs().items()
    ]
    bodies += [
        (
            "integrations",
            {"name": kind, "integrationType": kind, "enabled": kind == "websocket", f"{kind}Config": config},
        )
        for kind, (config, _) in INTEGRATIONS.items()
    ]
    broker = {"name": "mqtt", "integrationType": "mqtt", "mqttConfig": INTEGRATIONS["mqtt"][0]}
    await server.call("POST", f"{application}/integrations", broker, status=400)  # its private key is none
    paths = [f"/orgs/{org['id']}/audit-logs", "/dashboards", "/me", "/orgs"]
    for plural, body in bodies:
        path = f"{application}/{plural}"
        record = await server.call("POST", path, body)
        await server.call("POST", path, {**body, "noSuchField": PLANTED}, status=400)
        await server.call("PATCH", f"{path}/{record['id']}", {"name": 5, "noSuchField": PLANTED}, status=400)
        paths += [path, f"{path}/{record['id']}"]
    bucket = {"bucket": "my-bucket", "accessKeyId": "KEYID", "secretAccessKey": PLANTED}
    await server.call("PATCH", application, {"archiveConfig": {"s3": bucket}})
    await server.call(
        "PATCH", application, {"archiveConfig": {"s3": bucket | {"region": PLANTED}}}, status=400
    )
    paths.append(application)
    certificate = {"name": "c", "certificate": f"{cert}{key}"}
    await server.call("POST", f"{application}/certificates", certificate, status=400)
    generated = await server.call("PATCH", "/me/generateTwoFactorAuth")
    secret_lines = [line for line in key.splitlines() if len(line) == 64]
    return [PLANTED, generated["key"], *secret_lines], paths


@pytest.mark.slow
@pytest.mark.parametrize("log_format", ["console", "json"])
async def test_no_secret_is_logged_or_kept(tmp_path: Path, log_format: str) -> None:
    verbose = {
        "TRUNKLINE_LOG_LEVEL": "debug",
        "TRUNKLINE_LOG_FORMAT": log_format,
        "TRUNKLINE_ACCESS_LOG": "true",
    }
    async with serving(tmp_path / "house", program=("-c", FAULTY), env=OWNER | verbose) as server:
        secrets = await use(server)
        planted, paths = await plant(server)
        secrets += planted
        async with server.client() as client:
            pages = []
            for path in (*paths, "/metrics", "/healthz", "/openapi.json"):
                answer = await client.get(path)
                assert answer.is_success, (path, answer.text)
                pages.append(answer.text)
        backup = await trunkline(
            "backup", str(tmp_path / "house" / "copy"), "--data", str(tmp_path / "house")
        )
        assert backup.returncode == 0, backup.stderr
        assert await server.terminate() == 0
    assert server.log.count("a bug") >= 3
    assert "/auth/user" in server.log
    kept = b"".join(path.read_bytes() for path in (tmp_path / "house").rglob("*") if path.is_file())
    for secret in secrets:
        for text in (server.log, server.printed, *pages):
            assert secret not in text
        assert secret == PAYLOAD or secret.encode() not in kept
    assert "Bearer" not in server.log
