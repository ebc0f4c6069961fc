"""SAML 2.0, as far as a login needs it: the request to an identity provider, and its answer.

Owns what an answer must contain to be accepted. The signature is verified by SignXML, which returns what was signed;
everything is read from that alone. Answers in which it could be unclear what was signed are refused before: with a DTD,
with more than one assertion, with signatures or ids at other places than the specification has them.

A request has an id that contains its time and a message authentication code, so none has to be stored. An assertion
is accepted once; that is the concern of the user's actor, because it must be durable.

The XML libraries are imported by the first answer that is verified: most servers have no single sign-on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode
from xml.sax.saxutils import escape, quoteattr

from cryptography import x509

from trunkline.actors.core.values.errors import Invalid, Unauthorized
from trunkline.actors.core.values.timestamps import TimestampError, iso, parse_iso
from trunkline.limits.errors import SettingsError
from trunkline.limits.sso import SsoDomain
from trunkline.limits.table import Limits

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_ASSERTION: Final = "{urn:oasis:names:tc:SAML:2.0:assertion}"
_PROTOCOL: Final = "{urn:oasis:names:tc:SAML:2.0:protocol}"
_SIGNATURE: Final = "{http://www.w3.org/2000/09/xmldsig#}Signature"
_BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
_SUCCESS: Final = "urn:oasis:names:tc:SAML:2.0:status:Success"
_EMAIL_FORMAT: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
_POST_BINDING: Final = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"
_SIGNED_WITH: Final = (
    "RSA_SHA256",
    "RSA_SHA384",
    "RSA_SHA512",
    "ECDSA_SHA256",
    "ECDSA_SHA384",
    "ECDSA_SHA512",
)
_DIGESTED_WITH: Final = ("SHA256", "SHA384", "SHA512")
_NONCE_BYTES: Final = 8
_TIME_BYTES: Final = 6
_CODE_BYTES: Final = 16


class Assertion(NamedTuple):
    """What an identity provider says: who logs in. `id` may be used once; it expires at `expires_ms`."""

    email: str
    id: str
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partners:
    """The two sides of a login at one moment: the identity provider of a domain, and this server."""

    domain: str
    sso: SsoDomain
    certificates: tuple[x509.Certificate, ...]
    """With which the identity provider signs: two while it changes from one to the next."""
    base_url: str
    key: bytes
    """The key of the codes in the ids of requests."""
    limits: Limits
    now_ms: int

    @property
    def audience(self) -> str:
        """The name of this server at the identity provider."""
        return self.sso.audience or self.base_url

    @property
    def acs_url(self) -> str:
        """Where the identity provider sends its answers."""
        return self.sso.acs_url or f"{self.base_url}/auth/user/saml"


def read_signers(domain: str, sso: SsoDomain) -> tuple[x509.Certificate, ...]:
    """Read the certificates of an identity provider. Raises `SettingsError`."""
    try:
        return tuple(x509.load_pem_x509_certificates(Path(sso.certfile).read_bytes()))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f'sso."{domain}".certfile', f"cannot be read: {error}", "name a PEM file with its certificates"
        ) from None


# Requests.


def request_url(partners: Partners) -> str:
    """The URL of the identity provider with a new request to log somebody in."""
    head = {
        "ID": _request_id(partners),
        "Version": "2.0",
        "IssueInstant": iso(partners.now_ms),
        "Destination": partners.sso.url,
        "AssertionConsumerServiceURL": partners.acs_url,
        "ProtocolBinding": _POST_BINDING,
    }
    attributes = " ".join(f"{name}={quoteattr(value)}" for name, value in head.items())
    request = (
        f'<samlp:AuthnRequest xmlns:samlp="{_PROTOCOL[1:-1]}" xmlns:saml="{_ASSERTION[1:-1]}" {attributes}>'
        f"<saml:Issuer>{escape(partners.audience)}</saml:Issuer>"
        f'<samlp:NameIDPolicy Format="{_EMAIL_FORMAT}" AllowCreate="true"/></samlp:AuthnRequest>'
    )
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    deflated = compressor.compress(request.encode()) + compressor.flush()
    query = urlencode({"SAMLRequest": base64.b64encode(deflated).decode()})
    return f"{partners.sso.url}{'&' if '?' in partners.sso.url else '?'}{query}"


def _request_id(partners: Partners) -> str:
    content = secrets.token_bytes(_NONCE_BYTES) + partners.now_ms.to_bytes(_TIME_BYTES, "big")
    return f"_{(content + _code(partners, content)).hex()}"


def _code(partners: Partners, content: bytes) -> bytes:
    text = content + partners.domain.encode()
    return hmac.digest(partners.key, text, hashlib.sha256)[:_CODE_BYTES]


def _is_request(partners: Partners, id: str) -> bool:
    """Whether `id` is that of a request which this server made for the domain, a short time ago."""
    try:
        raw = bytes.fromhex(id.removeprefix("_"))
    except ValueError:
        return False
    content, code = raw[:-_CODE_BYTES], raw[-_CODE_BYTES:]
    if len(content) != _NONCE_BYTES + _TIME_BYTES or not hmac.compare_digest(code, _code(partners, content)):
        return False
    age_ms = partners.now_ms - int.from_bytes(content[_NONCE_BYTES:], "big")
    limits = partners.limits
    return -limits.sso_clock_skew_s * 1000 <= age_ms < limits.sso_request_s * 1000


# Answers.


def read_response(text: str, partners: Partners) -> Assertion:
    """Verify an answer, as base64. Takes milliseconds: not for the event loop.

    Raises `Invalid` for what is not an answer of SAML, `Unauthorized` for one that is not accepted.
    """
    root = _parse(text)
    assertion = _signed_assertion(root, partners)
    _check_response(root, partners)
    if _text(_only(assertion, f"{_ASSERTION}Issuer")) != partners.sso.issuer:
        raise Unauthorized("SAMLResponse: the issuer is not that of the domain.")
    subject = _only(assertion, f"{_ASSERTION}Subject")
    expires_ms = _check_confirmation(subject, partners)
    _check_conditions(_only(assertion, f"{_ASSERTION}Conditions"), partners)
    for statement in assertion.iterfind(f"{_ASSERTION}AuthnStatement"):
        _check_time(statement, "SessionNotOnOrAfter", partners)
    email = _email(assertion, subject, partners.sso.email_attribute)
    if email.rpartition("@")[2].lower() != partners.domain:
        raise Unauthorized(f"SAMLResponse: {email[:100]!r} is not an address of {partners.domain}.")
    return Assertion(email, str(assertion.get("ID")), expires_ms)


def _parse(text: str) -> Element:
    from lxml import etree

    try:
        raw = base64.b64decode(text, validate=False)
        # Entities could read files and grow without bound; SAML has no use for a document type.
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        root = etree.fromstring(raw, parser)
    except (binascii.Error, ValueError, etree.XMLSyntaxError):
        raise Invalid("SAMLResponse: is not XML in base64; send the field of the form as it is.") from None
    if root.getroottree().docinfo.doctype or root.tag != f"{_PROTOCOL}Response":
        raise Invalid("SAMLResponse: is not a response of SAML 2.0.")
    return root


def _signed_assertion(root: Element, partners: Partners) -> Element:
    """The assertion, as it was signed. Raises `Unauthorized`."""
    assertions = list(root.iter(f"{_ASSERTION}Assertion", f"{_ASSERTION}EncryptedAssertion"))
    if (
        len(assertions) != 1
        or assertions[0].tag != f"{_ASSERTION}Assertion"
        or assertions[0].getparent() is not root
    ):
        raise Unauthorized("SAMLResponse: must contain one assertion, which is not encrypted.")
    ids = [value for element in root.iter() for name, value in element.attrib.items() if name.lower() == "id"]
    if len(set(ids)) != len(ids):
        raise Unauthorized("SAMLResponse: contains an id twice.")
    signers = [signature.getparent() for signature in root.iter(_SIGNATURE)]
    if not signers or len(set(signers)) != len(signers) or not set(signers) <= {root, assertions[0]}:
        raise Unauthorized("SAMLResponse: the response or its assertion must be signed, each at most once.")
    signed = {signer.tag: _verified(signer, partners) for signer in signers}
    if (assertion := signed.get(assertions[0].tag)) is not None:
        return assertion
    return _only(signed[root.tag], f"{_ASSERTION}Assertion")


def _verified(signer: Element, partners: Partners) -> Element:
    """What the signature in an element covers, which must be the element. Raises `Unauthorized`."""
    from cryptography.exceptions import InvalidSignature
    from lxml import etree
    from signxml.algorithms import DigestAlgorithm, SignatureMethod
    from signxml.exceptions import SignXMLException
    from signxml.verifier import SignatureConfiguration, XMLVerifier

    expected = SignatureConfiguration(
        location="./",
        expect_references=1,
        signature_methods=frozenset(SignatureMethod[name] for name in _SIGNED_WITH),
        digest_algorithms=frozenset(DigestAlgorithm[name] for name in _DIGESTED_WITH),
        verification_time=datetime.fromtimestamp(partners.now_ms / 1000, UTC),
    )
    content = etree.tostring(signer, with_tail=False)
    result: Any = None
    for certificate in partners.certificates:
        try:
            result = XMLVerifier().verify(
                content, x509_cert=certificate, expect_config=expected, id_attribute="ID"
            )
            break
        except (SignXMLException, InvalidSignature, etree.LxmlError, ValueError, TypeError, KeyError):
            continue
    if result is None:
        raise Unauthorized(
            "SAMLResponse: the signature is not that of the identity provider, or its certificate has expired."
        )
    covered: Element | None = result.signed_xml
    if (
        covered is None
        or covered.tag != signer.tag
        or not covered.get("ID")
        or covered.get("ID") != signer.get("ID")
    ):
        raise Unauthorized("SAMLResponse: the signature does not cover what it stands in.")
    return covered


def _check_response(root: Element, partners: Partners) -> None:
    """Check the envelope. It may not be signed, so nothing is accepted because of it."""
    status = root.find(f"{_PROTOCOL}Status/{_PROTOCOL}StatusCode")
    if status is None or status.get("Value") != _SUCCESS:
        raise Unauthorized("SAMLResponse: the identity provider did not log the user in.")
    if root.get("Destination", partners.acs_url) != partners.acs_url:
        raise Unauthorized(f"SAMLResponse: the destination is not {partners.acs_url}.")


def _check_confirmation(subject: Element, partners: Partners) -> int:
    """Check for whom the assertion was made. Any one confirmation suffices (SAML 2.0 core, 2.4.1).

    Returns the time in ms at which the last of them expires: it must not depend on the one that is used, because it
    orders the used assertions.
    """
    found = [
        data
        for confirmation in subject.iterfind(f"{_ASSERTION}SubjectConfirmation")
        if confirmation.get("Method") == _BEARER
        and (data := confirmation.find(f"{_ASSERTION}SubjectConfirmationData")) is not None
    ]
    refusals = []
    for data in found:
        try:
            _check_bearer(data, partners)
        except Unauthorized as refusal:
            refusals.append(refusal)
    if len(refusals) == len(found):
        raise refusals[0] if refusals else Unauthorized("SAMLResponse: the assertion is not for a bearer.")
    return max(bound_ms for data in found if (bound_ms := _bound_ms(data, "NotOnOrAfter")) is not None)


def _check_bearer(data: Element, partners: Partners) -> None:
    """Check one confirmation. Raises `Unauthorized`."""
    if data.get("Recipient") != partners.acs_url:
        raise Unauthorized(f"SAMLResponse: the recipient is not {partners.acs_url}.")
    request = data.get("InResponseTo")
    if not (partners.sso.unsolicited if request is None else _is_request(partners, request)):
        raise Unauthorized("SAMLResponse: answers no request of this server, or an old one; begin again.")
    _check_time(data, "NotBefore", partners)
    _check_time(data, "NotOnOrAfter", partners)
    if data.get("NotOnOrAfter") is None:
        raise Unauthorized("SAMLResponse: the assertion does not say when it expires.")


def _check_conditions(conditions: Element, partners: Partners) -> None:
    _check_time(conditions, "NotBefore", partners)
    _check_time(conditions, "NotOnOrAfter", partners)
    restrictions = conditions.findall(f"{_ASSERTION}AudienceRestriction")
    for restriction in restrictions:
        if partners.audience not in map(_text, restriction.iterfind(f"{_ASSERTION}Audience")):
            raise Unauthorized(f"SAMLResponse: is not for the audience {partners.audience}.")
    if not restrictions:
        raise Unauthorized("SAMLResponse: the assertion names no audience.")


def _check_time(element: Element, name: str, partners: Partners) -> None:
    """Check a bound in time, if there is one, with the permitted skew of the clocks."""
    bound_ms = _bound_ms(element, name)
    if bound_ms is None:
        return
    skew_ms, now_ms = partners.limits.sso_clock_skew_s * 1000, partners.now_ms
    if name == "NotBefore":
        if now_ms < bound_ms - skew_ms:
            raise Unauthorized(f"SAMLResponse: is not valid before {iso(bound_ms)}; it is {iso(now_ms)}.")
    elif now_ms >= bound_ms + skew_ms:
        raise Unauthorized(f"SAMLResponse: has expired at {iso(bound_ms)}; it is {iso(now_ms)}.")


def _bound_ms(element: Element, name: str) -> int | None:
    text = element.get(name)
    try:
        return None if text is None else parse_iso(text, field=name)
    except TimestampError:
        raise Unauthorized(f"SAMLResponse: {name} is not a valid time.") from None


def _email(assertion: Element, subject: Element, attribute: str | None) -> str:
    """The e-mail address: the name of the subject, or the value of an attribute."""
    if attribute is None:
        return _text(_only(subject, f"{_ASSERTION}NameID"))
    values = [_text(value) for value in _attribute_values(assertion, attribute)]
    if len(values) != 1:
        raise Unauthorized(f"SAMLResponse: must have the attribute {attribute} with one value.")
    return values[0]


def _attribute_values(assertion: Element, name: str) -> Iterator[Element]:
    for each in assertion.iterfind(f"{_ASSERTION}AttributeStatement/{_ASSERTION}Attribute"):
        if each.get("Name") == name:
            yield from each.iterfind(f"{_ASSERTION}AttributeValue")


def _only(parent: Element, tag: str) -> Element:
    found = parent.findall(tag)
    if len(found) != 1:
        raise Unauthorized(f"SAMLResponse: must have one {tag.rpartition('}')[2]}.")
    return found[0]


def _text(element: Element) -> str:
    """The text of an element. Anything inside it is refused, so that no text is read in part."""
    if len(element):
        raise Unauthorized(f"SAMLResponse: {element.tag.rpartition('}')[2]} must contain text alone.")
    return (element.text or "").strip()
