"""Hashes and HMACs are those of the texts, in the encodings that the node names."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, run_node
from trunkline.actors.engine.nodes.hash import INLINE_BYTES_MAX
from trunkline.actors.engine.visit import Bounds

TEXT = "a<b & ü"
BYTES = TEXT.encode()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, hashlib.sha256(BYTES).hexdigest()),
        ({"algorithmTemplate": "MD5"}, hashlib.md5(BYTES, usedforsecurity=False).hexdigest()),
        ({"algorithmTemplate": "{{data.by}}"}, hashlib.sha1(BYTES, usedforsecurity=False).hexdigest()),
        ({"algorithmTemplate": "sha-512"}, hashlib.sha512(BYTES).hexdigest()),
        ({"algorithmTemplate": "SHA3-256"}, hashlib.sha3_256(BYTES).hexdigest()),
        ({"secretTemplate": "{{data.secret}}"}, hmac.digest(b"k=", BYTES, "sha256").hex()),
        (
            {"secretTemplate": "6b3d", "secretEncodingTemplate": "hex"},
            hmac.digest(b"k=", BYTES, "sha256").hex(),
        ),
        ({"encodingTemplate": "latin1"}, hashlib.sha256(BYTES).digest().decode("latin-1")),
        (
            {"encodingTemplate": "base64", "dataTemplate": "x"},
            base64.b64encode(hashlib.sha256(b"x").digest()).decode(),
        ),
        ({"dataTemplate": "eA", "dataEncodingTemplate": "base64"}, hashlib.sha256(b"x").hexdigest()),
        ({"dataTemplate": "{{data.gone}}"}, hashlib.sha256(b"").hexdigest()),
    ],
)
async def test_hashes(config: dict[str, Any], expected: str) -> None:
    given = {"dataTemplate": "{{data.text}}", "destinationPath": "data.hash", **config}
    shown = await run_node("HashNode", given, {"text": TEXT, "secret": "k=", "by": "SHA1"})
    assert shown["data"]["hash"] == expected


async def test_long_texts_are_hashed_as_well() -> None:
    text = "x" * (INLINE_BYTES_MAX + 1)
    config = {"dataTemplate": "{{data.text}}", "destinationPath": "data.hash"}
    bounds = Bounds(steps=10, loop_items=10, payload_bytes=1_000_000)
    shown = await run_node("HashNode", config, {"text": text}, bounds=bounds)
    assert shown["data"]["hash"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dataTemplate": ""}, "config.dataTemplate: is not set"),
        ({"destinationPath": ""}, "config.destinationPath: is not set"),
        ({"algorithmTemplate": "CRC"}, "config.algorithmTemplate: 'CRC' is not a hash that this server has."),
        (
            {"secretTemplate": "{{data.gone}}"},
            "config.secretTemplate: gives nothing, and a hash without a secret",
        ),
        ({"encodingTemplate": "morse"}, "config.encodingTemplate: gives 'morse'; give one of hex, base64,"),
        ({"dataEncodingTemplate": "morse"}, "config.dataEncodingTemplate: gives 'morse'; give one of utf8,"),
        ({"dataEncodingTemplate": "hex"}, "config.dataTemplate: gives a text that is not hex."),
    ],
)
async def test_what_does_not_fit_is_refused(config: dict[str, Any], message: str) -> None:
    name, told = await failure("HashNode", {"dataTemplate": "x", "destinationPath": "data.hash", **config})
    assert name == "ValidationError"
    assert told.startswith(message)


@pytest.mark.parametrize("algorithm", ["RIPEMD", "Whirlpool"])
@pytest.mark.parametrize("secret", ["", "k"])
async def test_what_openssl_may_lack_is_made_or_refused(algorithm: str, secret: str) -> None:
    config = {
        "dataTemplate": "x",
        "algorithmTemplate": algorithm,
        "secretTemplate": secret,
        "destinationPath": "data.hash",
    }
    shown = await run_node("HashNode", config)
    if "error" in shown:
        assert shown["error"]["message"].endswith("is not a hash that this server has.")
    else:
        assert len(shown["data"]["hash"]) in (40, 128)
