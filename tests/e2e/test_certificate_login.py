"""Logging a device in with the certificate of its connection, which TLS has verified and its application has stored."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.certificates import Issued, issue
from tests.e2e.conftest import Server, running_server
from tests.patience import PATIENCE_S

DAY_S = 86_400
CA = issue("authority of the operator", ca=True)
PUMP = issue("pump", CA, days=(-1, 10))
RENEWED = issue("pump", CA)
UNFIT = "deviceId and the certificate of this connection do not fit together."


def write(path: Path, issued: Issued) -> str:
    """A file with a certificate and its key."""
    path.write_text(issued.pem + issued.key_pem)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The settings of a server that asks for certificates of the authority."""
    server = write(tmp_path / "server.pem", issue("localhost", CA))
    authority = tmp_path / "authority.pem"
    authority.write_text(CA.pem)
    return {"certfile": server, "keyfile": server, "ca_certs": str(authority)}


@asynccontextmanager
async def secured(
    tmp_path: Path, files: dict[str, str], *, often: bool = False, **settings: Any
) -> AsyncIterator[Server]:
    """A server that asks for certificates; `often` has it look at its files often."""
    limits: dict[str, Any] = {"login_per_account": "off", "login_per_address": "off"}
    if often:
        limits["certificate_interval_s"] = 0.001
    chosen = {"client_certificates": "optional", **files, **settings}
    async with running_server(tmp_path / "data", engine="fast", limits=limits, **chosen) as server:
        yield server


async def log_in(
    server: Server,
    tmp_path: Path,
    device: str,
    certificate: Issued | None,
    *,
    http2: bool = False,
    name: str = "localhost",
    **more: Any,
) -> httpx.Response:
    """Log in over a new connection with a certificate; the client asks for the certificate of `name`."""
    context = ssl.create_default_context(cadata=CA.pem)
    context.check_hostname = False
    if certificate is not None:
        context.load_cert_chain(write(tmp_path / "client.pem", certificate))
    async with httpx.AsyncClient(
        base_url=server.url, verify=context, http2=http2, trust_env=False, timeout=PATIENCE_S
    ) as client:
        body = {"deviceId": device.rpartition("/")[2], **more}
        return await client.post("/auth/device", json=body, extensions={"sni_hostname": name})


@pytest.mark.parametrize("http2", [False, True])
async def test_a_device_logs_in_with_its_certificate(
    tmp_path: Path, files: dict[str, str], http2: bool
) -> None:
    async with secured(tmp_path, files) as server:
        application = await server.application()
        device, other = await server.device(application), await server.device(application, "other")
        body = {"certificate": PUMP.pem, "deviceIds": [device.rpartition("/")[2]], "pubTopics": ["a"]}
        await server.call("POST", f"{application}/certificates", body, status=201)
        answer = await log_in(server, tmp_path, device, PUMP, http2=http2)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        token = shown.pop("token")
        assert shown == {
            "applicationId": application.rpartition("/")[2],
            "deviceId": device.rpartition("/")[2],
            "deviceClass": "standalone",
            "restricted": True,
            "ownerType": "user",
            "filterType": "whitelist",
            "pubTopics": ["a"],
            "subTopics": [],
        }
        await server.call("POST", f"{device}/state", {"data": {"temp": 1}}, token=token, status=200)
        await server.call("GET", other, token=token, status=403)
        short = await log_in(server, tmp_path, device, PUMP, tokenTTL=DAY_S, requestedScopes=["device.get"])
        server.move_clock(9 * DAY_S)
        await server.call("GET", device, token=short.json()["token"], status=401)
        await server.call("GET", device, token=token, status=200)
        server.move_clock(DAY_S)
        await server.call("GET", device, token=token, status=401)
        assert (await log_in(server, tmp_path, device, PUMP)).status_code == 401


async def test_what_does_not_fit_together_is_401_and_says_no_more(
    tmp_path: Path, files: dict[str, str]
) -> None:
    async with secured(tmp_path, files) as server:
        first, second = await server.application("first"), await server.application("second")
        device, foreign = await server.device(first), await server.device(second)
        paths = [f"{application}/certificates" for application in (first, second)]

        async def refused(device: str, certificate: Issued) -> None:
            answer = await log_in(server, tmp_path, device, certificate)
            assert (answer.status_code, answer.json()["message"]) == (401, UNFIT)

        await refused(device, PUMP)  # stored nowhere
        made = await server.call("POST", paths[1], {"certificate": PUMP.pem}, status=201)
        await refused(device, PUMP)  # stored with another application
        assert (await log_in(server, tmp_path, foreign, PUMP)).status_code == 200
        await refused("0" * 24, PUMP)
        await server.call("PATCH", f"{paths[1]}/{made['id']}", {"status": "inactive"})
        await refused(foreign, PUMP)
        # Two applications may have the same certificate; the device decides.
        mine = await server.call("POST", paths[0], {"certificate": PUMP.pem}, status=201)
        answer = await log_in(server, tmp_path, device, PUMP)
        assert answer.json()["applicationId"] == first.rpartition("/")[2]
        await server.call("PATCH", f"{paths[0]}/{mine['id']}", {"status": "inactive"})
        await refused(device, PUMP)
        await refused(device, RENEWED)
        await server.call("PATCH", f"{paths[0]}/{mine['id']}", {"status": "active"})
        await server.call("DELETE", first)
        await refused(device, PUMP)
        without: list[tuple[Issued | None, dict[str, Any], str]] = [
            (None, {}, "key"),
            (PUMP, {"key": "a"}, "secret"),
        ]
        for certificate, more, field in without:
            answer = await log_in(server, tmp_path, foreign, certificate, **more)
            assert answer.status_code == 400
            assert answer.json()["message"].startswith(f"{field}: is missing; a device logs in with ")


async def test_what_changes_at_a_certificate_ends_the_tokens_made_with_it(
    tmp_path: Path, files: dict[str, str]
) -> None:
    async with secured(tmp_path, files) as server:
        application = await server.application()
        device = await server.device(application)
        path = f"{application}/certificates"
        made = await server.call("POST", path, {"certificate": PUMP.pem}, status=201)
        each = f"{path}/{made['id']}"
        token = (await log_in(server, tmp_path, device, PUMP)).json()["token"]
        for change, status in (
            ({"description": "of the cellar"}, 200),
            ({"status": "inactive"}, 401),
            ({"status": "active"}, 200),
            ({"certificate": RENEWED.pem}, 401),
        ):
            await server.call("PATCH", each, change)
            await server.call("GET", device, token=token, status=status)
        assert (await log_in(server, tmp_path, device, PUMP)).status_code == 401
        token = (await log_in(server, tmp_path, device, RENEWED)).json()["token"]
        await server.call("GET", device, token=token, status=200)
        await server.call("DELETE", each)
        await server.call("GET", device, token=token, status=401)


async def test_a_key_still_logs_in_where_certificates_are_optional_and_none_is_asked_for(
    tmp_path: Path, files: dict[str, str]
) -> None:
    async with secured(tmp_path, files) as server:
        device = await server.device(await server.application())
        token, _ = await server.device_token(device)
        await server.call("GET", device, token=token, status=200)
    asks_nobody = {name: files[name] for name in ("certfile", "keyfile")}
    async with secured(tmp_path, asks_nobody) as server:
        answer = await log_in(server, tmp_path, device, PUMP)
        assert answer.status_code == 400, "a certificate that was not asked for is not sent"
    stranger = issue("pump")
    async with secured(tmp_path, files) as server:
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            await log_in(server, tmp_path, device, stranger)


async def test_a_certificate_is_found_among_those_of_many_applications(
    tmp_path: Path, files: dict[str, str]
) -> None:
    async with secured(tmp_path, files) as server:
        devices = []
        for number in range(5):
            application = await server.application(f"{number}")
            devices.append(await server.device(application))
            for _ in range(2 if number % 2 else 0):
                body = {"certificate": issue("other").pem}
                await server.call("POST", f"{application}/certificates", body, status=201)
        await server.call("POST", f"{application}/certificates", {"certificate": PUMP.pem}, status=201)
        found = [(await log_in(server, tmp_path, device, PUMP)).status_code for device in devices]
        assert found == [401, 401, 401, 401, 200]


async def test_a_certificate_is_verified_also_where_a_domain_has_its_own(
    tmp_path: Path, files: dict[str, str]
) -> None:
    """With the authorities of the server, also after they have changed."""
    name, stranger = "www.farm.example", issue("another authority", ca=True)
    domain, foreign = issue(name, CA, names=(name,)), issue("pump", stranger)
    with_domains = {**files, "experience_domains": name, "public_url": "https://api.farm.example"}
    async with secured(tmp_path, with_domains, often=True) as server:
        application = await server.application()
        device = await server.device(application)
        for certificate in (PUMP, foreign):
            body = {"certificate": certificate.pem}
            await server.call("POST", f"{application}/certificates", body, status=201)
        body = {"domainName": name, "sslCert": domain.pem, "sslKey": domain.key_pem}
        await server.call("POST", f"{application}/experience/domains", body, status=201)

        async def is_served(certificate: Issued) -> bool:
            try:
                return (await log_in(server, tmp_path, device, certificate, name=name)).status_code == 200
            except (httpx.TransportError, ssl.SSLError):
                return False

        assert await is_served(PUMP)
        assert not await is_served(foreign)
        (tmp_path / "authority.pem").write_text(stranger.pem)
        with trio.fail_after(PATIENCE_S):
            while not await is_served(foreign):
                await trio.lowlevel.checkpoint()
        assert not await is_served(PUMP)
