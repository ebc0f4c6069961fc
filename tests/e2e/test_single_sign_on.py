"""Single sign-on by SAML 2.0: the request, the answers that are accepted, and all others."""

from __future__ import annotations

import base64
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from lxml import etree
from signxml.algorithms import SignatureMethod
from signxml.signer import XMLSigner

from tests.e2e.conftest import EMAIL, PASSWORD, Server
from tests.e2e.identity_provider import NAMES, IdentityProvider, Wanted, decoded, encoded, request_in
from trunkline.actors import server_users
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import load_settings

StartServer = Callable[..., Any]

PUBLIC = "https://devices.example.org"
ACS = f"{PUBLIC}/auth/user/saml"
OTHER = "other@example.com"
UNTHROTTLED = {"login_per_account": "off", "login_per_address": "off"}


@pytest.fixture
def idp(tmp_path: Path) -> IdentityProvider:
    return IdentityProvider(tmp_path)


@asynccontextmanager
async def serving(start_server: StartServer, idp: IdentityProvider, **domain: Any) -> AsyncIterator[Server]:
    """A server with single sign-on for example.com, whose owner has a verified address."""
    sso = {"example.com": idp.domain(**domain), "other.example": idp.domain()}
    async with start_server(sso=sso, public_url=f"{PUBLIC}/", limits=UNTHROTTLED) as server:
        await server_users.verify_email(server.root, EMAIL)
        yield server


def now(server: Server) -> datetime:
    return datetime.fromtimestamp(server.system.clock.wall_ms() // 1000, UTC)


async def begun(server: Server, domain: str = "example.com", **wanted: Any) -> Wanted:
    """The right answer to a new request."""
    answer = await server.call("GET", f"/auth/ssoDomain?email=anybody@{domain}", token="", status=200)
    request = request_in(answer["ssoRequest"])
    return Wanted(
        email=EMAIL,
        request=request.get("ID"),
        now=now(server),
        audience=PUBLIC,
        acs_url=ACS,
        id=f"_{request.get('ID')[1:9]}",
    ).but(**wanted)


async def log_in(server: Server, answer: str, status: int = 200, domain: str = "example.com") -> Any:
    body = {"SAMLResponse": answer, "SAMLDomain": domain}
    return await server.call("POST", "/auth/user/saml", body, token="", status=status)


async def refused(server: Server, answer: str, sentence: str, status: int = 401) -> None:
    refusal = await log_in(server, answer, status)
    assert sentence in refusal["message"], refusal
    assert refusal["message"].startswith(("SAMLResponse: ", "There is no user", "The user's"))


async def test_the_request_names_both_sides(start_server: StartServer, idp: IdentityProvider) -> None:
    async with serving(start_server, idp) as server:
        for email in (EMAIL, "nobody@EXAMPLE.com"):
            answer = await server.call("GET", f"/auth/ssoDomain?email={email}", token="", status=200)
            assert answer["ssoType"] == "SAML"
            assert answer["ssoRequest"].startswith("https://login.example.com/saml?tenant=1&SAMLRequest=")
            request = request_in(answer["ssoRequest"])
            assert request.get("Destination") == "https://login.example.com/saml?tenant=1"
            assert request.get("AssertionConsumerServiceURL") == ACS
            assert request.findtext("saml:Issuer", namespaces=NAMES) == PUBLIC
        await server.call("GET", "/auth/ssoDomain?email=a@sub.example.com", token="", status=204)


@pytest.mark.parametrize("signs", ["assertion", "response", "both"])
async def test_a_signed_answer_logs_in(start_server: StartServer, idp: IdentityProvider, signs: str) -> None:
    async with serving(start_server, idp) as server:
        wanted = await begun(server, email=EMAIL.title())
        body: dict[str, Any] = {"SAMLResponse": idp.answer(wanted, signs=signs), "SAMLDomain": "Example.com"}
        body |= {"requestedScopes": ["me.get"], "tokenTTL": 60}
        answer = await server.call("POST", "/auth/user/saml", body, token="", status=200)
        assert (await server.call("GET", "/me", token=answer["token"]))["id"] == answer["userId"]
        await server.call("GET", "/applications", token=answer["token"], status=403)
        # The session ends as one of the password does.
        await server_users.set_password(server.root, EMAIL, PASSWORD)
        await server.call("GET", "/me", token=answer["token"], status=401)


async def test_an_answer_is_accepted_once(start_server: StartServer, idp: IdentityProvider) -> None:
    async with serving(start_server, idp) as server:
        wanted = await begun(server)
        answer = idp.answer(wanted)
        await log_in(server, answer)
        await refused(server, answer, "was used before")
        # The same assertion in another envelope is the same assertion.
        await refused(server, idp.answer(wanted, signs="both"), "was used before")
    async with serving(start_server, idp) as server:
        await refused(server, answer, "was used before")
        server.move_clock(-60)
        await refused(server, answer, "was used before")


async def test_an_answer_must_be_right_in_every_part(
    start_server: StartServer, idp: IdentityProvider
) -> None:
    async with serving(start_server, idp) as server:
        await server_users.add_user(server.root, OTHER, PASSWORD)
        other_domain = (await begun(server, "other.example")).request
        cases: list[tuple[dict[str, Any], str]] = [
            ({"issuer": "https://evil.example"}, "issuer"),
            ({"audience": "https://another.example"}, "is not for the audience"),
            ({"audience": ""}, "names no audience"),
            ({"acs_url": "https://another.example/saml", "destination": ACS}, "recipient"),
            ({"destination": "https://another.example/saml"}, "destination"),
            ({"status": "urn:oasis:names:tc:SAML:2.0:status:Responder"}, "did not log the user in"),
            ({"method": "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches"}, "not for a bearer"),
            ({"request": ""}, "answers no request"),
            ({"request": "_" + "00" * 30}, "answers no request"),
            ({"request": other_domain}, "answers no request"),
            ({"not_before_s": 180}, "is not valid before"),
            ({"expires_s": -180}, "has expired"),
            ({"confirmed_until_s": -180}, "has expired"),
            ({"email": "owner@evil.example"}, "is not an address of example.com"),
            ({"email": "nobody@example.com"}, "There is no user"),
            ({"email": OTHER}, "is not verified"),
            ({"name_id": f"{EMAIL}<!-- x -->.evil.example"}, "is not an address of example.com"),
            ({"name_id": f"<saml:x>{EMAIL}</saml:x>"}, "must contain text alone"),
            ({"more": '<saml:AuthnStatement SessionNotOnOrAfter="2020-01-01T00:00:00Z"/>'}, "has expired"),
        ]
        for number, (changes, sentence) in enumerate(cases):
            wanted = (await begun(server)).but(id=f"_c{number}", **changes)
            await refused(server, idp.answer(wanted), sentence)
        # The clocks may differ by two minutes.
        skews: list[dict[str, Any]] = [{"not_before_s": 100}, {"expires_s": -100, "confirmed_until_s": -100}]
        for skew in skews:
            await log_in(server, idp.answer(await begun(server, **skew)))
        wanted = await begun(server)
        server.move_clock(901)
        await refused(server, idp.answer(wanted.but(now=now(server))), "answers no request")


async def test_only_what_the_identity_provider_signed_is_read(
    start_server: StartServer, idp: IdentityProvider
) -> None:
    """Answers that are not signed, badly signed, or rearranged around a true signature (signature wrapping)."""
    async with serving(start_server, idp) as server:
        await server_users.add_user(server.root, OTHER, PASSWORD)
        await server_users.verify_email(server.root, OTHER)
        wanted = await begun(server)
        evil = wanted.but(email=OTHER, id="_evil")
        unsigned = idp.response(wanted)
        await refused(server, encoded(unsigned), "must be signed")
        another_key = idp.signed(idp.response(wanted), key=ec.generate_private_key(ec.SECP256R1()))
        await refused(server, encoded(another_key), "signature is not that")
        for signs in ("assertion", "response", "both"):
            changed = decoded(idp.answer(wanted, signs=signs))
            changed.find(".//saml:NameID", NAMES).text = OTHER
            await refused(server, encoded(changed), "signature is not that")
        for attack in WRAPPINGS:
            true = decoded(idp.answer(wanted))
            await refused(server, encoded(attack(true, idp.response(evil))), "SAMLResponse: ")
        doctype = b'<!DOCTYPE x [<!ENTITY e "owner">]>' + etree.tostring(decoded(idp.answer(wanted)))
        await refused(server, base64.b64encode(doctype).decode(), "is not a response", status=400)
        for text in ("AAAA", base64.b64encode(b"<x/>").decode()):
            await refused(server, text, "SAMLResponse: ", status=400)
        # None of them has used the assertion up.
        await log_in(server, idp.answer(wanted))


def beside(true: Any, evil: Any) -> Any:
    """A second assertion before the signed one."""
    true.insert(0, evil.find("saml:Assertion", NAMES))
    return true


def signed_one_in_extensions(true: Any, evil: Any) -> Any:
    """The evil assertion in its place, and the signed one somewhere else."""
    holder = etree.SubElement(evil, f"{{{NAMES['samlp']}}}Extensions")
    holder.append(true.find("saml:Assertion", NAMES))
    return evil


def signed_one_inside(true: Any, evil: Any) -> Any:
    """The signed assertion in the signature of the evil one, which has the id of the signed one."""
    signed = true.find("saml:Assertion", NAMES)
    outer = evil.find("saml:Assertion", NAMES)
    outer.set("ID", signed.get("ID"))
    signature = signed.find("ds:Signature", NAMES)
    outer.append(signature)
    holder = etree.SubElement(signature, f"{{{NAMES['ds']}}}Object")
    holder.append(signed)
    return evil


def signature_moved(true: Any, evil: Any) -> Any:
    """The signature of the true assertion in the evil one."""
    signature = true.find("saml:Assertion", NAMES).find("ds:Signature", NAMES)
    evil.find("saml:Assertion", NAMES).append(copy.deepcopy(signature))
    return evil


def signature_at_the_response(true: Any, evil: Any) -> Any:
    """A response with the signature of an assertion that is beside it."""
    signed = true.find("saml:Assertion", NAMES)
    evil.insert(1, signed.find("ds:Signature", NAMES))
    evil.append(signed)
    return evil


def signed_name_elsewhere(true: Any, evil: Any) -> Any:
    """The id of the signed assertion at another element of the evil one."""
    signed = true.find("saml:Assertion", NAMES)
    outer = evil.find("saml:Assertion", NAMES)
    outer.insert(1, signed.find("ds:Signature", NAMES))
    statement = outer.find("saml:AuthnStatement", NAMES)
    statement.set("ID", signed.get("ID"))
    statement.append(signed)
    return evil


WRAPPINGS = (
    beside,
    signed_one_in_extensions,
    signed_one_inside,
    signature_moved,
    signature_at_the_response,
    signed_name_elsewhere,
)


async def test_a_signature_with_a_shared_key_is_refused(
    start_server: StartServer, idp: IdentityProvider
) -> None:
    """The certificate is public: it must not serve as the key of a message authentication code."""
    async with serving(start_server, idp) as server:
        response = idp.response(await begun(server))
        signer = XMLSigner(signature_algorithm=SignatureMethod.HMAC_SHA256)
        signed = signer.sign(
            response, key=idp.file.read_bytes(), reference_uri=f"#{response.get('ID')}", id_attribute="ID"
        )
        await refused(server, encoded(signed), "signature is not that")


async def test_a_domain_may_differ_from_the_defaults(
    start_server: StartServer, idp: IdentityProvider
) -> None:
    own = {
        "audience": "urn:devices",
        "acs_url": "https://app.example.org/acs",
        "email_attribute": "mail",
        "unsolicited": True,
    }
    async with serving(start_server, idp, **own) as server:
        value = f"<saml:AttributeValue>{EMAIL}</saml:AttributeValue>"
        mail = f'<saml:Attribute Name="mail">{value}</saml:Attribute>'
        statement = f"<saml:AttributeStatement>{mail}</saml:AttributeStatement>"
        wanted = (await begun(server)).but(
            audience="urn:devices", acs_url="https://app.example.org/acs", request="", email="u123"
        )
        await refused(server, idp.answer(wanted), "must have the attribute mail")
        await log_in(server, idp.answer(wanted.but(more=statement)))


async def test_any_one_confirmation_suffices(start_server: StartServer, idp: IdentityProvider) -> None:
    """The first one is for another recipient; used up is the assertion, not the confirmation."""

    def answer(wanted: Wanted, *recipients: str) -> str:
        response = idp.response(wanted)
        only = response.find(".//saml:SubjectConfirmation", NAMES)
        for recipient in recipients:
            other = copy.deepcopy(only)
            other.find("saml:SubjectConfirmationData", NAMES).set("Recipient", recipient)
            only.addprevious(other)
        only.getparent().remove(only)
        return encoded(idp.signed(response))

    async with serving(start_server, idp) as server:
        right = answer(await begun(server), "https://another.example/saml", ACS)
        await log_in(server, right)
        await refused(server, right, "was used before")
        wrong = answer(await begun(server), "https://another.example/saml", "https://b.example")
        await refused(server, wrong, f"the recipient is not {ACS}")


async def test_an_identity_provider_may_have_two_certificates(
    start_server: StartServer, idp: IdentityProvider, tmp_path: Path
) -> None:
    """While it changes from one to the next, both are in the file."""
    (tmp_path / "next").mkdir()
    successor, stranger = IdentityProvider(tmp_path / "next"), ec.generate_private_key(ec.SECP256R1())
    idp.file.write_bytes(idp.file.read_bytes() + successor.file.read_bytes())
    async with serving(start_server, idp) as server:
        for signer in (idp, successor):
            await log_in(server, signer.answer(await begun(server)))
        foreign = idp.signed(idp.response(await begun(server)), key=stranger)
        await refused(server, encoded(foreign), "signature is not that")


async def test_an_unknown_domain_and_an_expired_certificate(
    start_server: StartServer, idp: IdentityProvider
) -> None:
    async with serving(start_server, idp) as server:
        answer = await log_in(server, idp.answer(await begun(server)), 400, domain="unknown.example")
        assert answer["message"].startswith("SAMLDomain: unknown.example has no single sign-on")
        server.move_clock(2 * 86_400)
        await refused(server, idp.answer(await begun(server)), "certificate has expired")


def test_the_settings_of_a_domain_are_checked() -> None:
    right = '[sso."example.com"]\nurl = "https://a.example"\nissuer = "a"\ncertfile = "a.pem"\n'
    settings = load_settings(toml_text=right, environ={}, overrides={})
    assert settings.sso["example.com"].issuer == "a"
    for text, sentence in (
        ("sso = 1", "sso is not a table"),
        (right.replace("example.com", "Example"), 'sso."Example" is not a valid domain'),
        (right.replace("issuer", "isuer"), 'sso."example.com".issuer is missing'),
        (right + "audiense = 'x'", 'sso."example.com".audiense is not a setting; did you mean audience?'),
        (right + "unsolicited = 1", 'sso."example.com".unsolicited is 1; give true or false'),
        (right.replace("https://a", "a"), "give a URL"),
    ):
        with pytest.raises(SettingsError, match=sentence.replace("?", r"\?")):
            load_settings(toml_text=text, environ={}, overrides={})
