"""The domains and slugs of an experience: names that a server has once, and certificates that fit them."""

from __future__ import annotations

import datetime as dt
import json
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.certificates import issue
from tests.e2e.conftest import NOT_BY_DOORS, Server, running_server
from tests.e2e.experiences import NO_ID, Experience, Json, new_experience
from tests.http.tls_client import write_certificate
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.maintenance.verify import verify
from trunkline.actors.presentation.experience.kind import DOMAIN
from trunkline.store.keyring import Keyring

HOST = "www.farm.example"


@pytest.fixture
async def exp(server: Server) -> Experience:
    return await new_experience(server)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def issued(authority: trustme.CA, *names: str) -> Json:
    """A certificate for these names with its key and its issuer, as fields of a domain."""
    leaf = authority.issue_cert(*names)
    return {
        "sslKey": leaf.private_key_pem.bytes().decode(),
        "sslCert": leaf.cert_chain_pems[0].bytes().decode(),
        "sslBundle": authority.cert_pem.bytes().decode(),
    }


async def test_a_certificate_has_to_fit_the_key_and_the_name(exp: Experience, authority: trustme.CA) -> None:
    first, other = issued(authority, HOST), issued(authority, "*.farm.example")
    made = await exp.make("domains", domainName=HOST, **first)
    each = f"domains/{made['id']}"
    assert (made["sslCert"], made["sslBundle"], made["version"]) == (
        first["sslCert"],
        first["sslBundle"],
        "develop",
    )
    for body, field in (
        ({"sslCert": other["sslCert"]}, "sslCert: does not belong to sslKey"),
        ({"sslKey": other["sslKey"]}, "sslCert: does not belong to sslKey"),
        ({"domainName": "farm.example"}, f"sslCert: is for {HOST}, not for farm.example"),
        ({"sslCert": None}, "sslCert: is missing"),
        ({"sslKey": None}, "sslKey: is missing"),
        ({"sslCert": None, "sslKey": None}, "sslBundle: belongs to a certificate"),
        ({"sslCert": first["sslCert"] + first["sslKey"]}, "sslCert: contains a private key"),
        ({"sslBundle": "x" * 60}, "sslBundle: is not a whole certificate"),
        ({"sslKey": first["sslCert"]}, "sslKey: is not a private key"),
    ):
        assert (await exp.refused("PATCH", each, body)).startswith(field), field
    assert (await exp.patch(each, **other))["sslCert"] == other["sslCert"]
    assert (await exp.patch(each, domainName="shop.farm.example"))["domainName"] == "shop.farm.example"
    deep = await exp.refused("PATCH", each, {"domainName": "a.shop.farm.example"})
    assert deep.startswith("sslCert: is for *.farm.example")
    assert "sslCert" not in await exp.patch(each, sslKey=None, sslCert=None, sslBundle=None)


async def test_keys_that_browsers_do_not_accept_are_refused(exp: Experience, authority: trustme.CA) -> None:
    cert = issued(authority, HOST)["sslCert"]
    plain, locked = serialization.NoEncryption(), serialization.BestAvailableEncryption(b"password")
    curve = ec.generate_private_key(ec.SECP256R1())
    for key, protection, said in (
        (rsa.generate_private_key(65537, 1024), plain, "sslKey: has 1024 bits"),
        (ed25519.Ed25519PrivateKey.generate(), plain, "sslKey: is of a kind"),
        (curve, locked, "sslKey: is protected by a password"),
        (curve, plain, "sslCert: does not belong to sslKey"),
    ):
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        body = {"domainName": HOST, "sslCert": cert, "sslKey": pem.decode()}
        assert (await exp.refused("POST", "domains", body)).startswith(said)
    now = dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    ended = (
        x509.CertificateBuilder(name, name, curve.public_key(), 1)
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(now - dt.timedelta(days=1))
        .sign(curve, hashes.SHA256())
    )
    body["sslCert"] = ended.public_bytes(serialization.Encoding.PEM).decode()
    assert "expired" in await exp.refused("POST", "domains", body)
    assert (await exp.get("domains"))["totalCount"] == 0


async def test_a_certificate_that_no_client_would_accept_is_refused(exp: Experience) -> None:
    """It would be used at once; or TLS would not take it, and clients would get that of the server."""
    root = issue("root", ca=True)
    between, stranger = issue("between", root, ca=True), issue("between", ca=True)
    leaf, by_root = issue(HOST, between, names=(HOST,)), issue(HOST, root, names=(HOST,))
    small = rsa.generate_private_key(65537, 1024)
    old = issue("old", root, ca=True, key=small)
    by_old = issue(HOST, old, names=(HOST,))
    odd = issue(HOST, root, names=(HOST,), key=ec.generate_private_key(ec.SECP256K1()))
    early = issue(HOST, root, names=(HOST,), days=(1, 2))
    client = issue(HOST, root, names=(HOST,), purposes=(ExtendedKeyUsageOID.CLIENT_AUTH,))
    der = by_root.certificate.public_bytes(serialization.Encoding.DER)
    unknown = ssl.DER_cert_to_PEM_cert(
        der.replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209"))
    )
    foreign = "no other certificate in it has issued the certificate of the domain"
    for issued_to, cert, bundle, said in (
        (leaf, leaf.pem, stranger.pem, f"sslBundle: {foreign}"),
        (leaf, leaf.pem + root.pem, None, f"sslCert: {foreign}"),
        (by_old, by_old.pem, old.pem, "sslBundle: block 1 has a key of 1024 bits"),
        (odd, odd.pem, None, "sslKey: is of the curve secp256k1"),
        (by_root, unknown, None, "sslCert: block 1 has a key or a signature of a kind"),
        (early, early.pem, None, "sslCert: block 1 is not valid before"),
        (client, client.pem, None, "sslCert: block 1 is for other purposes than serverAuth"),
    ):
        body = {"domainName": HOST, "sslKey": issued_to.key_pem, "sslCert": cert}
        body |= {} if bundle is None else {"sslBundle": bundle}
        assert (await exp.refused("POST", "domains", body)).startswith(said), said
    # In any order, with the root or without; another bundle is checked as well.
    bundle = root.pem + between.pem
    made = await exp.make("domains", domainName=HOST, sslKey=leaf.key_pem, sslCert=leaf.pem, sslBundle=bundle)
    each = f"domains/{made['id']}"
    assert (await exp.refused("PATCH", each, {"sslBundle": stranger.pem})).startswith(f"sslBundle: {foreign}")
    await exp.patch(each, sslBundle=None)
    await exp.patch(each, sslKey=by_root.key_pem, sslCert=by_root.pem)


async def test_the_key_is_encrypted_and_comes_back_nowhere(exp: Experience, authority: trustme.CA) -> None:
    fields = issued(authority, HOST)
    made = await exp.make("domains", domainName=HOST, **fields)
    shown = json.dumps(
        [made, await exp.get("domains"), await exp.patch(f"domains/{made['id']}", version=None)]
    )
    assert "PRIVATE KEY" not in shown
    assert "sslKey" not in shown
    assert "version" not in (await exp.get("domains"))["items"][0]
    system, id = exp.server.system, bytes.fromhex(made["id"])
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, DOMAIN, bytes.fromhex(exp.application.split("/")[2]), id)
    assert found is not None
    assert b"PRIVATE KEY" not in found.raw
    opened = system.component(Keyring).unseal(found.doc["sslKey"], kind=DOMAIN.name, id=id, field="sslKey")
    assert opened == fields["sslKey"]


@pytest.mark.parametrize(
    "name", ["farm", "a..example", "-a.example", "a b.example", "192.0.2.1", "exämple.de", "*.a.example"]
)
async def test_a_name_that_is_no_domain_is_400(exp: Experience, name: str) -> None:
    assert (await exp.refused("POST", "domains", {"domainName": name})).startswith("domainName: ")


async def test_names_are_unique_in_the_server_until_they_are_released(exp: Experience) -> None:
    server = exp.server
    domain = await exp.make("domains", domainName=HOST)
    slug = await exp.make("slugs", slug="farm")
    other = await new_experience(server)
    assert (await other.refused("POST", "domains", {"domainName": HOST.upper()})).startswith(
        f"domainName: {HOST} is taken"
    )
    for body in ({"slug": "farm"}, {"slug": "no_slug"}):
        assert (await other.refused("POST", "slugs", body)).startswith("slug: ")
    taken = await server.call("PATCH", other.application, {"endpointSlug": "farm"}, status=400)
    assert taken["message"].startswith("endpointSlug: farm is taken")
    await server.call("PATCH", other.application, {"endpointSlug": "barn"})
    assert "is the endpointSlug of an application" in await exp.refused("POST", "slugs", {"slug": "barn"})
    await exp.patch(f"domains/{domain['id']}", domainName="a.farm.example")
    await other.make("domains", domainName=HOST)
    await exp.delete(f"slugs/{slug['id']}")
    await other.make("slugs", slug="farm")
    await server.call("DELETE", other.application)
    for _ in range(20):
        if not await sweep(server.system):
            break
    await exp.make("domains", domainName=HOST)
    await exp.make("slugs", slug="farm")
    await server.stop()
    report = verify(Path(server.settings.data_dir))
    assert report.ok, report.problems


async def test_domains_and_slugs_name_the_version_that_serves_them(exp: Experience) -> None:
    domain = await exp.make("domains", domainName=HOST)
    slug = await exp.make("slugs", slug="farm", version=None)
    assert (domain["version"], slug.get("version")) == ("develop", None)
    made = await exp.make("versions", version="v1", domainIds=[domain["id"]], slugIds=[slug["id"]])
    assert made["attachedDomains"] == [{"id": domain["id"], "domainName": HOST}]
    assert made["attachedSlugs"] == [{"id": slug["id"], "slug": "farm"}]
    assert (await exp.get(f"slugs/{slug['id']}"))["version"] == "v1"
    assert f"domain {HOST} serves the version v1" in await exp.refused("DELETE", "versions/v1")
    await exp.patch(f"domains/{domain['id']}", version="develop")
    assert (await exp.get("versions/develop"))["attachedDomains"] == made["attachedDomains"]
    assert "slug farm serves the version v1" in await exp.refused("DELETE", "versions/v1")
    await exp.delete(f"slugs/{slug['id']}")
    await exp.delete("versions/v1")
    for place, body in (("domains", {"domainName": "b.example"}), ("slugs", {"slug": "barn"})):
        said = await exp.refused("POST", place, {**body, "version": "v1"})
        assert said.startswith("version: there is no version v1")
    assert (await exp.refused("PATCH", f"domains/{domain['id']}", {"version": NO_ID})).startswith("version: ")


@NOT_BY_DOORS
async def test_a_connection_gets_the_certificate_of_its_domain(
    start_server: Any, tmp_path: Path, authority: trustme.CA
) -> None:
    """Over HTTP/1.1 and HTTP/2; other names get that of the server, and a changed one is used at once."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    stranger, strange = trustme.CA(), ssl.create_default_context()
    stranger.configure_trust(strange)
    of_server = write_certificate(stranger, tmp_path)
    async with start_server(**of_server, public_url="https://api.farm.example") as server:
        exp = await new_experience(server)
        made = await exp.make("domains", domainName=HOST, **issued(authority, HOST))
        body = {"domainName": "api.farm.example", **issued(authority, "api.farm.example")}
        assert (await exp.refused("POST", "domains", body)).startswith(
            "domainName: api.farm.example is a name of"
        )

        async def request(
            http2: bool, context: ssl.SSLContext = trusting, name: str = HOST
        ) -> httpx.Response:
            sent: Json = {"headers": {"Host": HOST}, "extensions": {"sni_hostname": name}}
            async with httpx.AsyncClient(
                verify=context, http2=http2, trust_env=False, timeout=PATIENCE_S
            ) as client:
                return await client.get(server.url, **sent)

        for http2 in (False, True):
            answer = await request(http2)
            assert (answer.http_version, answer.status_code) == ("HTTP/2" if http2 else "HTTP/1.1", 404)
        assert (await request(False, strange, "localhost")).status_code == 404
        with pytest.raises(httpx.ConnectError):
            await request(False, strange)
        with pytest.raises(httpx.ConnectError):
            await request(False, name="api.farm.example")
        await exp.patch(f"domains/{made['id']}", **issued(stranger, HOST))
        with pytest.raises(httpx.ConnectError):
            await request(False)
        assert (await request(False, strange)).status_code == 404
        await exp.patch(f"domains/{made['id']}", **issued(authority, HOST))
        assert (await request(True)).status_code == 404


async def test_a_door_takes_the_certificate_of_a_domain_and_its_successor(
    tmp_path: Path, authority: trustme.CA
) -> None:
    first, second = ssl.create_default_context(), ssl.create_default_context()
    successor = trustme.CA()
    authority.configure_trust(first)
    successor.configure_trust(second)
    of_server = write_certificate(trustme.CA(), tmp_path)
    async with running_server(tmp_path / "data", doors=True, **of_server) as server:
        exp = await new_experience(server)
        made = await exp.make("domains", domainName=HOST, **issued(authority, HOST))

        async def is_trusted(context: ssl.SSLContext) -> bool:
            sent: Json = {"headers": {"Host": HOST}, "extensions": {"sni_hostname": HOST}}
            async with httpx.AsyncClient(verify=context, trust_env=False, timeout=PATIENCE_S) as client:
                try:
                    return (await client.get(server.url, **sent)).status_code == 404
                except httpx.ConnectError:
                    return False

        with trio.fail_after(PATIENCE_S):
            while not await is_trusted(first):
                await trio.lowlevel.checkpoint()
            await exp.patch(f"domains/{made['id']}", **issued(successor, HOST))
            while not await is_trusted(second):
                await trio.lowlevel.checkpoint()
        assert not await is_trusted(first)


async def test_only_names_that_the_operator_permits_are_domains(start_server: Any) -> None:
    """Nobody else knows by which names the API is called, so a stranger could take one of them with a certificate."""
    async with start_server(experience_domains=None) as server:
        exp = await new_experience(server)
        for name in ("api.example.com", "www.farm.example"):
            said = await exp.refused("POST", "domains", {"domainName": name})
            assert said.startswith(f"domainName: {name} is not among the names that the operator")
        one, other = exp.application.split("/")[2], await new_experience(server)
    listed = f"shop.example *.farm.example={one}"
    async with start_server(experience_domains=listed, public_url="http://api.farm.example") as server:
        exp, other = (Experience(server, each.application) for each in (exp, other))
        for name in ("a.farm.example", "b.c.farm.example", "SHOP.example"):
            await exp.make("domains", domainName=name)
        for name in ("api.farm.example", "farm.example", "xfarm.example", "x.shop.example"):
            assert (await exp.refused("POST", "domains", {"domainName": name})).startswith(
                f"domainName: {name} is"
            )
        for name in ("farm.localhost", "a.b.localhost"):
            assert "localhost" in await exp.refused("POST", "domains", {"domainName": name})
        assert "is not among" in await other.refused("POST", "domains", {"domainName": "d.farm.example"})
        (made, *_) = (await exp.get("domains"))["items"]
        assert "is not among" in await exp.refused(
            "PATCH", f"domains/{made['id']}", {"domainName": "x.example"}
        )
        # What is stored stays and can be changed, also when the list does not have it any more.
    async with start_server(experience_domains=None) as server:
        exp = Experience(server, exp.application)
        await exp.patch(f"domains/{made['id']}", domainName=made["domainName"], version=None)


async def test_the_suffix_is_for_slugs(start_server: Any) -> None:
    more = {"experience_suffix": "pages.example", "public_url": "https://api.pages.example"}
    async with start_server(**more) as server:
        exp = await new_experience(server)
        said = await exp.refused("POST", "domains", {"domainName": "victim.pages.example"})
        assert said.startswith("domainName: names that end with .pages.example are those of slugs")
