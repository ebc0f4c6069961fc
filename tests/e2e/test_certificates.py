"""Certificates and authorities: what they say is read from them, and what is not one is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.certificates import issue
from tests.e2e.conftest import Server
from trunkline.actors.maintenance import data_directory

StartServer = Callable[..., Any]

DEVICE = issue("pump", ca=True)
ROOT = issue("root", ca=True)
MIDDLE = issue("middle", ROOT, ca=True)
LEAF = issue("leaf", MIDDLE)


async def certificates(server: Server) -> str:
    return f"{await server.application()}/certificates"


# What a certificate says.


async def test_the_details_are_read_from_the_certificate(server: Server) -> None:
    path = await certificates(server)
    made = await server.call("POST", path, {"certificate": "Subject: CN=pump\n" + LEAF.pem}, status=201)
    certificate, info = LEAF.certificate, made["certificateInfo"]
    assert made["certificate"] == LEAF.pem.strip(), "what is between certificates is not kept"
    assert int(info["serialNumber"], 16) == certificate.serial_number
    assert bytes.fromhex(info["fingerprint"].replace(":", "")) == certificate.fingerprint(SHA256())
    assert (info["commonName"], info["issuerName"]) == ("leaf", "middle")
    for field, time in (
        ("notValidBefore", certificate.not_valid_before_utc),
        ("notValidAfter", certificate.not_valid_after_utc),
    ):
        assert info[field] == time.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    defaults = {"status": "active", "filterType": "all", "deviceIds": [], "deviceTags": [], "pubTopics": []}
    assert defaults.items() <= made.items()
    nameless = issue(None)
    info = (await server.call("POST", path, {"certificate": nameless.pem}, status=201))["certificateInfo"]
    assert (info["commonName"], info["issuerName"]) == ("", "O=farm")


async def test_a_renewed_certificate_takes_the_place_of_the_old_one(server: Server) -> None:
    path = await certificates(server)
    chain = LEAF.pem + MIDDLE.pem + ROOT.pem
    made = await server.call("POST", path, {"certificate": chain, "deviceTags": [{"key": "a"}]}, status=201)
    assert (made["certificate"], made["filterType"]) == (chain, "whitelist")
    each = f"{path}/{made['id']}"
    renewed = issue("leaf", MIDDLE, days=(0, 90))
    changed = await server.call("PATCH", each, {"certificate": renewed.pem, "status": "inactive"})
    assert changed["certificateInfo"] != made["certificateInfo"]
    assert (changed["certificate"], changed["status"]) == (renewed.pem, "inactive")
    # The old one is free again, the new one is taken, until its record is deleted.
    other = await server.call("POST", path, {"certificate": LEAF.pem}, status=201)
    for body in ({"certificate": renewed.pem}, {"certificate": renewed.pem + MIDDLE.pem}):
        refusal = await server.call("PATCH", f"{path}/{other['id']}", body, status=400)
        assert refusal["message"] == (
            f"certificate: the certificate {made['id']} has it already; give each its own."
        )
    assert await server.call("PATCH", each, {"certificate": renewed.pem}), "its own is not taken"
    await server.call("DELETE", each)
    await server.call("POST", path, {"certificate": renewed.pem}, status=201)
    elsewhere = await certificates(server)
    await server.call("POST", elsewhere, {"certificate": renewed.pem}, status=201)


async def test_a_store_with_certificates_is_sound(start_server: StartServer) -> None:
    async with start_server() as server:
        path = await certificates(server)
        for issued in (LEAF, DEVICE):
            made = await server.call("POST", path, {"certificate": issued.pem}, status=201)
        await server.call("DELETE", f"{path}/{made['id']}")
    assert data_directory.check(server.system.store.directory.path).problems == []


# What is refused.

EXPIRED = issue("old", days=(-30, -1))
OF_SERVER = issue("server", purposes=(ExtendedKeyUsageOID.SERVER_AUTH,))
REFUSED: list[tuple[str, str]] = [
    ("x" * 60, "is not a whole certificate"),
    (LEAF.pem[:-30], "is not a whole certificate"),
    (LEAF.pem + MIDDLE.pem[:200], "is not a whole certificate"),
    (LEAF.pem.replace("M", "N", 3), "block 1 cannot be read as an X.509 certificate"),
    (LEAF.pem.replace("CERTIFICATE", "CERTIFICATE REQUEST"), "block 1 is not a certificate"),
    (EXPIRED.pem, "block 1 expired at "),
    (OF_SERVER.pem, "block 1 is for other purposes than clientAuth"),
    (LEAF.pem + ROOT.pem, "block 2 did not issue the certificate before it"),
    (MIDDLE.pem + LEAF.pem, "block 2 did not issue the certificate before it"),
    (LEAF.pem * 11, "has 11 certificates"),
    ("x" * 49, "has 49 characters"),
    (LEAF.pem + "\n" * 32767, "has "),
]


async def test_what_is_no_certificate_is_refused(server: Server) -> None:
    path = await certificates(server)
    made = await server.call("POST", path, {"certificate": DEVICE.pem}, status=201)
    for text, reason in REFUSED:
        for method, target in (("POST", path), ("PATCH", f"{path}/{made['id']}")):
            refusal = await server.call(method, target, {"certificate": text}, status=400)
            assert refusal["message"].startswith(f"certificate: {reason}"), text
    assert (await server.call("GET", path))["items"] == [made]


async def test_an_authority_is_a_bundle_of_certificates_that_may_issue(server: Server) -> None:
    path = f"{await server.application()}/certificate-authorities"
    bundle = MIDDLE.pem + ROOT.pem
    made = await server.call("POST", path, {"name": "farm", "caBundle": bundle}, status=201)
    assert (made["caBundle"], made["status"]) == (bundle, "active")
    assert [info["commonName"] for info in made["caInfo"]] == ["middle", "root"]
    each = f"{path}/{made['id']}"
    for text, reason in (
        (LEAF.pem, "block 1 is not the certificate of an authority"),
        (ROOT.pem + LEAF.pem, "block 2 is not the certificate of an authority"),
        (ROOT.pem * 2, "block 2 appears twice"),
        (ROOT.pem + issue("old", ca=True, days=(-30, -1)).pem, "block 2 expired at "),
    ):
        refusal = await server.call("PATCH", each, {"caBundle": text}, status=400)
        assert refusal["message"].startswith(f"caBundle: {reason}"), text
    assert await server.call("GET", each) == made
    changed = await server.call("PATCH", each, {"caBundle": ROOT.pem, "status": "inactive"})
    assert (len(changed["caInfo"]), changed["status"]) == (1, "inactive")


def private_keys() -> list[str]:
    """A private key in each form in which one is written."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forms = (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL, PrivateFormat.OpenSSH)
    plain = [key.private_bytes(Encoding.PEM, form, NoEncryption()).decode() for form in forms]
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")).decode()
    return [*plain, sealed, LEAF.key_pem]


def body_of(key: str) -> str:
    """A line from within a key."""
    return key.strip().splitlines()[2][:40]


async def test_a_private_key_is_refused_and_reaches_nothing(
    start_server: StartServer, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = private_keys()
    async with start_server(log_level="debug", access_log=True) as server:
        application = await server.application()
        said = ""
        for issued, path, field in (
            (DEVICE, f"{application}/certificates", "certificate"),
            (ROOT, f"{application}/certificate-authorities", "caBundle"),
        ):
            for key in keys:
                for text in (key, issued.pem + key, key + issued.pem, key.replace("\n", " "), key[:200]):
                    body = {"name": "a"} if field == "caBundle" else {}
                    refusal = await server.call("POST", path, {**body, field: text}, status=400)
                    assert refusal["message"].startswith(f"{field}: contains a private key"), text[:40]
                    said += refusal["message"]
                long = await server.call("POST", path, {**body, field: key + " " * 32767}, status=400)
                wrong = await server.call("POST", path, {**body, field: [key]}, status=400)
                said += long["message"] + wrong["message"]
            assert (await server.call("GET", path))["totalCount"] == 0
    out, err = capfd.readouterr()
    assert "POST" in out + err, "calls are logged"
    for key in keys:
        assert body_of(key) not in said + out + err
