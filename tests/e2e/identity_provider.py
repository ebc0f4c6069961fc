"""An identity provider for tests of single sign-on: it makes answers of SAML, and signs them with a key of its own.

Owns no test. `Wanted` says what an answer contains, so that a test can change one part of a right answer.
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from lxml import etree
from signxml.algorithms import CanonicalizationMethod, SignatureMethod
from signxml.signer import XMLSigner

from trunkline.limits.sso import SsoDomain

ISSUER = "https://login.example.com"
SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
NAMES = {"saml": SAML, "samlp": SAMLP, "ds": "http://www.w3.org/2000/09/xmldsig#"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an answer contains. Times in seconds from `now`. A text that is empty is left out."""

    email: str
    request: str
    now: datetime
    audience: str
    acs_url: str
    id: str = "_a1"
    issuer: str = ISSUER
    destination: str | None = None
    status: str = "urn:oasis:names:tc:SAML:2.0:status:Success"
    method: str = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
    not_before_s: int = -5
    expires_s: int = 300
    confirmed_until_s: int = 300
    name_id: str = ""
    more: str = ""

    def but(self, **changes: Any) -> Wanted:
        return dataclasses.replace(self, **changes)


class IdentityProvider:
    """One with a new key."""

    def __init__(self, folder: Path) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "login.example.com")])
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(self.key, hashes.SHA256())
        )
        self.file = folder / "idp.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def domain(self, **more: Any) -> SsoDomain:
        return SsoDomain(url=f"{ISSUER}/saml?tenant=1", issuer=ISSUER, certfile=str(self.file), **more)

    def response(self, wanted: Wanted) -> Any:
        """An answer that is not signed yet."""

        def at(seconds: int) -> str:
            return (wanted.now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

        request = f'InResponseTo="{wanted.request}"' if wanted.request else ""
        destination = wanted.acs_url if wanted.destination is None else wanted.destination
        audience = (
            f"<saml:AudienceRestriction><saml:Audience>{wanted.audience}</saml:Audience></saml:AudienceRestriction>"
            if wanted.audience
            else ""
        )
        return etree.fromstring(
            f"""<samlp:Response xmlns:samlp="{SAMLP}" xmlns:saml="{SAML}" ID="_r{wanted.id}" Version="2.0"
                IssueInstant="{at(0)}" Destination="{destination}" {request}>
              <saml:Issuer>{wanted.issuer}</saml:Issuer>
              <samlp:Status><samlp:StatusCode Value="{wanted.status}"/></samlp:Status>
              <saml:Assertion ID="{wanted.id}" Version="2.0" IssueInstant="{at(0)}">
                <saml:Issuer>{wanted.issuer}</saml:Issuer>
                <saml:Subject>
                  <saml:NameID>{wanted.name_id or wanted.email}</saml:NameID>
                  <saml:SubjectConfirmation Method="{wanted.method}">
                    <saml:SubjectConfirmationData {request} Recipient="{wanted.acs_url}"
                      NotOnOrAfter="{at(wanted.confirmed_until_s)}"/>
                  </saml:SubjectConfirmation>
                </saml:Subject>
                <saml:Conditions NotBefore="{at(wanted.not_before_s)}" NotOnOrAfter="{at(wanted.expires_s)}">
                  {audience}
                </saml:Conditions>
                <saml:AuthnStatement AuthnInstant="{at(0)}"/>
                {wanted.more}
              </saml:Assertion>
            </samlp:Response>"""
        )

    def signed(
        self, element: Any, method: SignatureMethod = SignatureMethod.ECDSA_SHA256, key: Any = None
    ) -> Any:
        """An element with an enveloped signature over it."""
        signer = XMLSigner(
            signature_algorithm=method,
            c14n_algorithm=CanonicalizationMethod.EXCLUSIVE_XML_CANONICALIZATION_1_0,
        )
        return signer.sign(
            element,
            key=key or self.key,
            cert=[self.certificate],
            reference_uri=f"#{element.get('ID')}",
            id_attribute="ID",
        )

    def answer(self, wanted: Wanted, *, signs: str = "assertion") -> str:
        """A signed answer. `signs` names what is signed: assertion, response, or both."""
        response = self.response(wanted)
        if signs in ("assertion", "both"):
            assertion = response.find("saml:Assertion", NAMES)
            response.replace(assertion, self.signed(assertion))
        if signs in ("response", "both"):
            response = self.signed(response)
        return encoded(response)


def encoded(response: Any) -> str:
    return base64.b64encode(etree.tostring(response)).decode()


def decoded(answer: str) -> Any:
    return etree.fromstring(base64.b64decode(answer))


def request_in(url: str) -> Any:
    """The request in the URL to which the browser is sent."""
    (deflated,) = parse_qs(urlsplit(url).query)["SAMLRequest"]
    return etree.fromstring(zlib.decompress(base64.b64decode(deflated), wbits=-zlib.MAX_WBITS))
