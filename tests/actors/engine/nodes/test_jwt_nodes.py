"""Tokens are signed, read and verified, and the time of the run decides whether they have expired."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from tests.actors.engine.flow_cases import NOW_MS, failure, node, run_node
from tests.actors.engine.run_house import (
    add_credential,
    button,
    create_flow,
    kept_runs,
    press,
    run_one,
    runs_end,
    told,
)
from tests.actors.house import running_house

NOW = NOW_MS // 1000
SECRET = "a secret & with = marks, of a good length: 64 bytes for HS512 or more"
CREATE = {
    "dataTemplate": '{"user": "{{data.user}}"}',
    "secretTemplate": "{{data.secret}}",
    "destinationPath": "data.t",
}
VERIFY = {"tokenTemplate": "{{data.t}}", "secretTemplate": "{{data.secret}}", "errorPath": "data.error"}
DATA = {"user": "u1", "secret": SECRET}


def pem(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def public_pem(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def certificate(key: Any) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + timedelta(days=1))
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


async def created(data: Any = None, **config: Any) -> Any:
    shown = await run_node("JWTCreateNode", {**CREATE, **config}, DATA if data is None else data)
    return shown["data"]["t"]


async def verified(token: Any, secret: str = SECRET, **config: Any) -> tuple[int, Any]:
    shown = await run_node("JWTVerifyNode", {**VERIFY, **config}, {"t": token, "secret": secret})
    return shown["output"], shown["data"].get("error")


def signed(claims: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256") -> str:
    return jwt.encode(claims, key, algorithm)


@pytest.mark.parametrize(
    ("config", "claims", "header"),
    [
        ({}, {"user": "u1", "iat": NOW}, {"alg": "HS256", "typ": "JWT"}),
        ({"expiresIn": 60}, {"user": "u1", "iat": NOW, "exp": NOW + 60}, {"alg": "HS256", "typ": "JWT"}),
        (
            {"expiresIn": "{{data.life}}", "issuerTemplate": "me"},
            {"user": "u1", "iat": NOW, "exp": NOW + 9, "iss": "me"},
            {"alg": "HS256", "typ": "JWT"},
        ),
        (
            {"dataTemplateType": "path", "dataTemplate": "data.claims"},
            {"iat": 5, "exp": 6},
            {"alg": "HS256", "typ": "JWT"},
        ),
        (
            {"dataTemplateType": "path", "dataTemplate": "data.claims", "expiresIn": 1},
            {"iat": 5, "exp": 6},
            {"alg": "HS256", "typ": "JWT"},
        ),
        ({"algorithmTemplate": "HS512"}, {"user": "u1", "iat": NOW}, {"alg": "HS512", "typ": "JWT"}),
        (
            {"headerTemplate": '{"kid": "k1", "alg": "HS384"}'},
            {"user": "u1", "iat": NOW},
            {"alg": "HS384", "typ": "JWT", "kid": "k1"},
        ),
    ],
)
async def test_a_token_has_the_claims_and_the_header(config: Any, claims: Any, header: Any) -> None:
    token = await created({**DATA, "life": 9, "claims": {"iat": 5, "exp": 6}}, **config)
    read = jwt.decode_complete(
        token, SECRET, [header["alg"]], options={"verify_exp": False, "verify_iat": False}
    )
    assert (read["payload"], read["header"]) == (claims, header)


@pytest.mark.parametrize(
    ("private", "public", "algorithm"),
    [
        (pem(RSA), public_pem(RSA), "RS256"),
        (pem(RSA), certificate(RSA), "PS512"),
        (pem(CURVE), public_pem(CURVE), "ES256"),
    ],
)
async def test_keys_sign_and_verify(private: str, public: str, algorithm: str) -> None:
    token = await created({**DATA, "secret": private}, algorithmTemplate=algorithm)
    assert await verified(token, public) == (1, None)
    assert await verified(token, public, algorithmTemplate=algorithm) == (1, None)
    assert (await verified(token, public, algorithmTemplate="RS512"))[0] == 0
    assert (await verified(f"{token[:-8]}AAAAAAAA", public))[0] == 0


@pytest.mark.parametrize(
    ("token", "config", "output", "problem"),
    [
        (signed({"a": 1}), {}, 1, None),
        (f"Bearer {signed({'a': 1})}", {}, 1, None),
        (signed({"exp": NOW + 1}), {}, 1, None),
        (signed({"exp": NOW}), {}, 0, {"type": "TokenExpiredError", "message": "The token has expired."}),
        (signed({"nbf": NOW}), {}, 1, None),
        (
            signed({"nbf": NOW + 1}),
            {},
            0,
            {"type": "NotBeforeError", "message": "The token is not valid yet."},
        ),
        (signed({"iss": "me"}), {"issuerTemplate": "me"}, 1, None),
        (signed({"iss": "you"}), {"issuerTemplate": "me"}, 0, "The issuer of the token is not me."),
        (signed({}), {"issuerTemplate": "me"}, 0, "The issuer of the token is not me."),
        (
            signed({"a": 1}, "another secret of a good length: 32 bytes"),
            {},
            0,
            "Signature verification failed",
        ),
        (signed({"a": 1}, None, "none"), {}, 0, "The specified alg value is not allowed"),
        (signed({"a": 1}), {"algorithmTemplate": "HS256"}, 1, None),
        (signed({"a": 1}), {"algorithmTemplate": " HS256 "}, 1, None),
        (
            signed({"a": 1}),
            {"algorithmTemplate": "HS384"},
            0,
            "The token is not valid: The specified alg value is not allowed.",
        ),
        *(
            (
                signed({"a": 1}),
                {"algorithmTemplate": algorithm},
                0,
                f"config.algorithmTemplate: gives {shown!r}; for this secret give one of HS256, HS384, HS512.",
            )
            for algorithm, shown in (("RS256", "RS256"), ("bogus", "bogus"), ("{{data.gone}}", ""))
        ),
        ("no token", {}, 0, "Not enough segments"),
        ("", {}, 0, "Not enough segments"),
        (None, {}, 0, "Not enough segments"),
        (f"a.{'b' * 70_000}.c", {}, 0, "The token has 70004 characters; 65536 are accepted."),
    ],
)
async def test_what_is_valid(token: Any, config: Any, output: int, problem: Any) -> None:
    way, error = await verified(token, **config)
    assert way == output
    if isinstance(problem, str):
        assert error["type"] == "JsonWebTokenError"
        assert problem in error["message"]
    else:
        assert error == problem


async def test_a_public_key_is_no_secret() -> None:
    """Who knows the public key signs nothing with it, and a secret verifies nothing that a key signed."""
    public = public_pem(RSA)
    forged = jwt.api_jws.PyJWS()
    forged.unregister_algorithm("HS256")

    class Careless(jwt.algorithms.HMACAlgorithm):
        def prepare_key(self, key: Any) -> bytes:
            return str(key).encode()

    forged.register_algorithm("HS256", Careless(jwt.algorithms.HMACAlgorithm.SHA256))
    assert (await verified(forged.encode(b"{}", public, "HS256"), public))[0] == 0
    assert (await verified(signed({}, RSA, "RS256"), SECRET))[0] == 0
    assert (await created({**DATA, "secret": pem(RSA)}))["error"]["message"].startswith(
        "The algorithm is 'HS256';"
    )


@pytest.mark.parametrize(
    "key",
    [
        pem(CURVE),
        pem(rsa.generate_private_key(65537, 1024)),
        pem(x25519.X25519PrivateKey.generate()),
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN é",
    ],
)
async def test_a_key_that_does_not_fit_is_told(key: str) -> None:
    error = (await created({**DATA, "secret": key}, algorithmTemplate="RS256"))["error"]
    assert error["type"] == "JsonWebTokenError"
    assert (await verified(signed({}, RSA, "RS256"), key))[0] == 0


async def test_decode_reads_without_verifying() -> None:
    token = signed({"a": 1}, "another secret of a good length: 32 bytes")
    config = {"tokenTemplate": "{{data.t}}", "destinationPath": "data.d"}
    read = {}
    for name, text in (("plain", token), ("bearer", f"Bearer {token}"), ("none", "no token")):
        read[name] = (await run_node("JWTDecodeNode", config, {"t": text}))["data"]["d"]
    assert read == {"plain": {"a": 1}, "bearer": {"a": 1}, "none": None}
    complete = (await run_node("JWTDecodeNode", {**config, "complete": True}, {"t": token}))["data"]["d"]
    assert complete == {
        "header": {"alg": "HS256", "typ": "JWT"},
        "payload": {"a": 1},
        "signature": token.rpartition(".")[2],
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"algorithmTemplate": "none"},
            "The algorithm is 'none'; for this secret give one of HS256, HS384, HS512.",
        ),
        (
            {"algorithmTemplate": "RS256"},
            "The algorithm is 'RS256'; for this secret give one of HS256, HS384,",
        ),
        (
            {"secretTemplate": "{{data.gone}}"},
            "config.secretTemplate: gives nothing, so nothing can be signed",
        ),
        ({"dataTemplate": "[1]"}, "config.dataTemplate: gives no object; a token has an object there."),
        ({"dataTemplate": "data.gone", "dataTemplateType": "path"}, "config.dataTemplate: gives nothing;"),
        ({"headerTemplate": '{"b64": false}'}, "The header must not have b64 or crit."),
        (
            {"headerTemplate": '{"kid": 5}'},
            "The token cannot be signed: Key ID header parameter must be a string",
        ),
        ({"expiresIn": "Infinity"}, "The time of expiry cannot be told"),
        (
            {"dataTemplate": '{"x": "{{data.long}}{{data.long}}"}'},
            "The token would have more than 65536 characters.",
        ),
        ({"dataTemplate": '{"x": "{{data.long}}"}'}, "The token has 80115 characters; 65536 are accepted."),
    ],
)
async def test_what_cannot_be_signed_is_told(config: dict[str, Any], message: str) -> None:
    error = (await created({**DATA, "long": "x" * 60_000}, **config))["error"]
    assert error["type"] == "JsonWebTokenError"
    assert error["message"].startswith(message)


@pytest.mark.parametrize(
    ("type", "config", "name", "message"),
    [
        (
            "JWTCreateNode",
            {**CREATE, "dataTemplate": ""},
            "ValidationError",
            "config.dataTemplate: is not set",
        ),
        (
            "JWTCreateNode",
            {**CREATE, "dataTemplate": "{"},
            "InvalidJsonTemplate",
            "config.dataTemplate: The text",
        ),
        (
            "JWTCreateNode",
            {**CREATE, "secretTemplate": ""},
            "ValidationError",
            "config.secretTemplate: is not set",
        ),
        (
            "JWTCreateNode",
            {**CREATE, "destinationPath": ""},
            "ValidationError",
            "config.destinationPath: is not",
        ),
        (
            "JWTCreateNode",
            {**CREATE, "expiresIn": "x"},
            "ValidationError",
            "config.expiresIn: gives 'x', not a number",
        ),
        (
            "JWTDecodeNode",
            {"destinationPath": "data.d"},
            "ValidationError",
            "config.tokenTemplate: is not set",
        ),
        (
            "JWTVerifyNode",
            {**VERIFY, "secretTemplate": ""},
            "ValidationError",
            "config.secretTemplate: is not set",
        ),
    ],
)
async def test_what_does_not_fit_is_refused(
    type: str, config: dict[str, Any], name: str, message: str
) -> None:
    told = await failure(type, config, DATA)
    assert told[0] == name
    assert told[1].startswith(message)


@pytest.mark.parametrize(
    ("algorithm", "secret"), [("HS512", SECRET), ("RS256", pem(RSA)), ("ES256", pem(CURVE))]
)
async def test_a_credential_signs_and_verifies(tmp_path: Path, algorithm: str, secret: str) -> None:
    async with running_house(tmp_path / "data") as house:
        config = {"algorithm": algorithm, "secret": secret, "issuer": "us"}
        await add_credential(house, "mine", type="jwt", jwtConfig=config)
        nodes: list[dict[str, Any]] = [
            node("c", "JWTCreateNode", {**CREATE, "credentialNameTemplate": "mine"}, ["v"]),
            node("v", "JWTVerifyNode", {**VERIFY, "credentialNameTemplate": "mine"}, ["d"], ["d"]),
            node("d", "DebugNode"),
        ]
        flow = await create_flow(house, [button(["c"])], nodes)
        await press(house, flow, {"user": "u1"})
        await runs_end(house)
        (run,) = kept_runs(house, flow)
        token = told(run)["data"]["t"]
        assert run.path[1::3][:2] == [0, 1], told(run)
    assert jwt.get_unverified_header(token)["alg"] == algorithm
    assert jwt.decode(token, options={"verify_signature": False})["iss"] == "us"


async def test_a_credential_verifies_only_its_algorithm_and_its_issuer(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        config = {"algorithm": "HS512", "secret": SECRET, "issuer": "us"}
        await add_credential(house, "mine", type="jwt", jwtConfig=config)
        for token, problem in (
            (signed({"iss": "us"}), "The token is not valid"),
            (signed({"iss": "them"}, algorithm="HS512"), "The issuer of the token is not us."),
        ):
            run = await run_one(
                house, "JWTVerifyNode", {**VERIFY, "credentialNameTemplate": "mine"}, {"t": token}
            )
            assert told(run)["data"]["error"]["message"].startswith(problem)
