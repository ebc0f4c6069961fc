"""HttpNode over TLS: whom it trusts, and the certificate that it shows."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.actors.engine.run_house import run_one, told
from tests.actors.house import House, running_house
from tests.web_server import web_server

Json = dict[str, Any]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data", callback_private_networks=True) as found:
        yield found


async def result(house: House, url: str, data: Any = None, **config: Any) -> Json:
    """The result of a request to a server."""
    given = {"uriTemplate": f"{url}/echo", "responsePath": "data.result", **config}
    found: Json = told(await run_one(house, "HttpNode", given, data))["data"]
    return found


async def test_certificates_are_verified_as_the_node_says(house: House) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    pem = authority.cert_pem.bytes().decode()
    async with web_server(context=context) as server:
        run = await run_one(house, "HttpNode", {"uriTemplate": server.url})
        assert run.error is not None
        assert run.error[1] == "HttpError"
        assert "certificate" in run.error[2]
        assert (await result(house, server.url, disableSSLVerification=True))["result"]["statusCode"] == 200
        found = await result(house, server.url, {"ca": pem}, caCertTemplate="{{data.ca}}")
        assert found["result"]["statusCode"] == 200


async def test_a_client_shows_its_certificate(house: House) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    pair = authority.issue_cert("client@example.com")
    data = {
        "ca": authority.cert_pem.bytes().decode(),
        "cert": pair.cert_chain_pems[0].bytes().decode(),
        "key": pair.private_key_pem.bytes().decode(),
    }
    own = {"certTemplate": "{{data.cert}}", "keyTemplate": "{{data.key}}"}
    async with web_server(context=context) as server:
        found = await result(
            house, server.url, data, caCertTemplate="{{data.ca}}", authType="clientCert", authCredentials=own
        )
        assert found["result"]["statusCode"] == 200
