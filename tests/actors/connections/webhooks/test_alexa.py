"""Calls of Alexa are taken only with a signature by Amazon, on what was written just now."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import Store

from trunkline.actors.connections.webhooks.alexa import (
    SIGNER,
    AlexaCertificates,
    _authorities,
    certificate_url,
    check_call,
)
from trunkline.actors.connections.webhooks.messages import ReceiveCall
from trunkline.actors.core.outgoing.http_calls import Undelivered
from trunkline.actors.core.values.errors import Forbidden, Overloaded
from trunkline.limits.table import Limits

NOW = datetime.now(UTC)
NOW_MS = int(NOW.timestamp() * 1000)
URL = "https://s3.amazonaws.com/echo.api/echo-api-cert.pem"
SKILL = "amzn1.ask.skill.1"
KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("root", "signer", "other")}


def certificate(
    name: str, *, issuer: str = "root", host: str | None = None, days: tuple[int, int] = (-1, 30)
) -> x509.Certificate:
    """A certificate of a key: for a host, or of an authority."""
    key, subject = KEYS[name], x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
    usage = dict.fromkeys(
        ("content_commitment", "data_encipherment", "key_agreement", "encipher_only", "decipher_only"), False
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + timedelta(days=days[0]))
        .not_valid_after(NOW + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True, key_encipherment=host is not None, key_cert_sign=host is None,
                crl_sign=host is None, **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(KEYS[issuer].public_key()), critical=False
        )
    )  # fmt: skip
    if host is not None:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
    return builder.sign(KEYS[issuer], SHA256())


ROOT = certificate("root")


def pem(*chain: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(Encoding.PEM) for each in chain)


class Amazon:
    """What lies at the addresses of Amazon, and which were fetched."""

    def __init__(self, chain: bytes | None) -> None:
        self.chain = chain
        self.fetched: list[str] = []

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if self.chain is None:
            raise Undelivered("s3.amazonaws.com cannot be reached: no route.")
        return self.chain


def certificates(amazon: Amazon, length_max: int = 4) -> AlexaCertificates:
    limits = Limits().override({"alexa_certificates_max": length_max})
    return AlexaCertificates(amazon.fetch, limits, Store([ROOT]))


SIGNER_CHAIN = pem(certificate("signer", host=SIGNER), ROOT)


async def test_the_certificate_of_the_signer_is_fetched_once_until_it_expires() -> None:
    amazon = Amazon(SIGNER_CHAIN)
    keys = certificates(amazon)
    changes = (("https", "HTTPS"), (".com", ".com:443"), ("api/", "api/../echo.api/"), ("pem", "pem"))
    for old, new in changes:
        spelling = URL.replace(old, new, 1)
        key = await keys.key(spelling, NOW_MS)
        assert key.public_numbers() == KEYS["signer"].public_key().public_numbers()
    assert amazon.fetched == [URL]
    with pytest.raises(Forbidden):
        await keys.key(URL, NOW_MS + 31 * 86_400_000)
    assert len(amazon.fetched) == 2


async def test_few_certificates_are_kept() -> None:
    amazon = Amazon(SIGNER_CHAIN)
    keys = certificates(amazon, length_max=2)
    for name in ("a", "b", "c", "b", "c", "a"):
        await keys.key(f"https://s3.amazonaws.com/echo.api/{name}", NOW_MS)
    assert [url.rpartition("/")[2] for url in amazon.fetched] == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://s3.amazonaws.com/echo.api/cert.pem",
        "https://notamazon.com/echo.api/cert.pem",
        "https://s3.amazonaws.com.example.com/echo.api/cert.pem",
        "https://s3.amazonaws.com@example.com/echo.api/cert.pem",
        "https://s3.amazonaws.com/EcHo.aPi/cert.pem",
        "https://s3.amazonaws.com/invalid.path/cert.pem",
        "https://s3.amazonaws.com/echo.api/../private/cert.pem",
        "https://s3.amazonaws.com:563/echo.api/cert.pem",
        "https://s3.amazonaws.com:x/echo.api/cert.pem",
        "https://[/echo.api/cert.pem",
        "https://s3.amazonaws.com/echo.api/\r\ncert.pem",
    ],
)
def test_an_address_that_is_not_amazons_is_refused(url: str) -> None:
    with pytest.raises(Forbidden, match="SignatureCertChainUrl: is not an address"):
        certificate_url(url)


@pytest.mark.parametrize(
    "chain",
    [
        b"",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        pem(certificate("signer", host="example.com"), ROOT),
        pem(certificate("signer", host=SIGNER, days=(-30, -1)), ROOT),
        pem(certificate("signer", issuer="other", host=SIGNER), certificate("other", issuer="other")),
    ],
    ids=["empty", "no certificate", "of another host", "expired", "of another authority"],
)
async def test_certificates_that_are_not_alexas_are_refused(chain: bytes) -> None:
    with pytest.raises(Forbidden, match="its certificates are not those of Alexa"):
        await certificates(Amazon(chain)).key(URL, NOW_MS)


async def test_a_certificate_that_cannot_be_fetched_is_a_matter_of_time() -> None:
    with pytest.raises(Overloaded, match=r"cannot be fetched: s3\.amazonaws\.com cannot be reached"):
        await certificates(Amazon(None)).key(URL, NOW_MS)


def test_the_authorities_of_amazon_are_known() -> None:
    """As the certificates that httpx trusts have them; an empty store would be refused."""
    assert isinstance(_authorities(), Store)


# The call.


def body(*, seconds_ago: float = 0, skill: str = SKILL, **changed: Any) -> bytes:
    written = (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    context = {"System": {"application": {"applicationId": skill}}}
    return json.dumps({"request": {"timestamp": written}, "context": context, **changed}).encode()


def signed(content: bytes, key: str = "signer") -> ReceiveCall:
    signature = base64.b64encode(KEYS[key].sign(content, PKCS1v15(), SHA256()))
    headers = {b"signature-256": signature}
    return ReceiveCall(method="POST", url="", query=b"", headers=headers, body=content)


def check(call: ReceiveCall, skill: str = SKILL) -> None:
    check_call(call, KEYS["signer"].public_key(), skill, NOW_MS)


def test_a_signed_call_is_taken() -> None:
    check(signed(body()))
    check(signed(body(seconds_ago=140)))
    check(signed(body(skill="another")), skill="")
    session = {"application": {"applicationId": SKILL}}
    check(signed(body(context=None, session=session)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (signed(body(), "other"), "Signature-256"),
        (ReceiveCall(method="POST", url="", query=b"", headers={}, body=body()), "Signature-256"),
        (ReceiveCall(method="POST", url="", query=b"", headers={b"signature-256": b"!"}, body=body()), "Signature-256"),
        (signed(body(seconds_ago=160)), "request.timestamp: is more than 150 seconds"),
        (signed(body(seconds_ago=-160)), "request.timestamp: is more than 150 seconds"),
        (signed(body(request={})), "request.timestamp: is not there"),
        (signed(body(request={"timestamp": [1]})), "request.timestamp: is not there"),
        (signed(b"[]"), "request.timestamp: is not there"),
        (signed(b"[" * 200_000), "request.timestamp: is not there"),
        (signed(b"\xff"), "request.timestamp: is not there"),
        (signed(body(skill="another")), "applicationId: is not"),
        (signed(body(context={"System": "x"}, session=[])), "applicationId: is not"),
    ],
)  # fmt: skip
def test_a_call_that_is_not_alexas_is_refused(call: ReceiveCall, said: str) -> None:
    with pytest.raises(Forbidden, match=said):
        check(call)
