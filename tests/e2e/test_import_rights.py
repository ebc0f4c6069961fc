"""An import needs the rights to what a bundle has, where these are above the right to import."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.certificates import issue
from tests.e2e.conftest import Json, Server
from tests.e2e.rows import api_token
from tests.e2e.test_application_templates import folder, template
from tests.e2e.test_imports import bundle_of, old
from tests.e2e.test_roles import Farm, make_farm

StartServer = Callable[..., Any]

OWN, OTHER = issue("plant", ca=True), issue("stranger", ca=True)
AUTHORITIES: Final = {
    "ApplicationCertificateAuthority": [{"id": old(1), "body": {"name": "plant CA", "caBundle": OTHER.pem}}]
}
OTHERS: Final = {
    "Device": [{"id": old(2), "body": {"name": "d"}}],
    "ExperienceUser": [{"id": old(3), "body": {"email": "v@example.com", "password": "Abcdefg-12345"}}],
    "Flow": [{"id": old(4), "body": {"name": "f"}}],
}


async def send(server: Server, path: str, bundle: bytes, token: str, **options: Any) -> httpx.Response:
    """The response to an import."""
    files: Any = {
        "importBundle": ("b.zip", bundle, "application/zip"),
        "options": (None, json.dumps(options)),
    }
    async with server.client(token) as client:
        return await client.post(f"{path}/import", files=files)


async def bundles_of(server: Server, application: str) -> list[str]:
    """The certificates of the authorities of an application."""
    listed = await server.call("GET", f"{application}/certificate-authorities")
    return [each["caBundle"].strip() for each in listed["items"]]


async def make_plant(server: Server) -> Farm:
    """An organization whose application barn has an authority."""
    farm = await make_farm(server)
    body = {"name": "plant CA", "caBundle": OWN.pem}
    await server.call("POST", f"{farm.barn}/certificate-authorities", body, status=201)
    return farm


@pytest.mark.parametrize("conflict", ["create", "replace"])
@pytest.mark.parametrize("dry", [False, True])
async def test_a_role_imports_no_authority_that_it_may_not_make(
    server: Server, conflict: str, dry: bool
) -> None:
    farm = await make_plant(server)
    token = await farm.join("carl", "collaborate")
    options = {"conflictBehavior": conflict, "dryRun": dry}
    response = await send(server, farm.barn, bundle_of({**AUTHORITIES, **OTHERS}), token, **options)
    assert response.status_code == 422, response.text
    operation = {
        "create": "applicationCertificateAuthorities.post",
        "replace": "applicationCertificateAuthority.patch",
    }[conflict]
    message = (
        "The user carl@example.com, in whose name this acts, may not do this: "
        f"{operation} needs one of the roles edit, admin."
    )
    name = "ApplicationCertificateAuthority"
    assert response.json()["validationErrors"] == [
        {"type": name, "name": "plant CA", "id": old(1), "message": message}
    ]
    assert await bundles_of(server, farm.barn) == [OWN.pem.strip()]
    assert (await server.call("GET", f"{farm.barn}/devices"))["totalCount"] == 0
    # What stays as it is needs no right, and all else needs that to import.
    kept = {**options, "conflictBehavior": "retain"}
    response = await send(server, farm.barn, bundle_of({**AUTHORITIES, **OTHERS}), token, **kept)
    assert response.status_code == 200, response.text
    assert await bundles_of(server, farm.barn) == [OWN.pem.strip()]


async def test_a_role_that_may_make_authorities_imports_them(server: Server) -> None:
    farm = await make_plant(server)
    token = await farm.join("eve", "edit")
    response = await send(server, farm.barn, bundle_of(AUTHORITIES), token, conflictBehavior="replace")
    assert response.status_code == 200, response.text
    assert await bundles_of(server, farm.barn) == [OTHER.pem.strip()]


async def test_a_role_makes_no_application_of_the_organization_by_an_import(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("carl", "collaborate")
    files: Any = {
        "importBundle": ("b.zip", bundle_of(AUTHORITIES), "application/zip"),
        "ownerType": (None, "organization"),
        "ownerId": (None, farm.org_id),
    }
    async with server.client(token) as client:
        response = await client.post("/applications/import", files=files)
        assert response.status_code == 403, response.text
        # An own application has all that its owner may make.
        del files["ownerType"], files["ownerId"]
        response = await client.post("/applications/import", files=files)
    assert response.status_code == 201, response.text


async def test_a_token_imports_no_authority_without_the_scope_to_make_one(server: Server) -> None:
    application = await server.application()
    narrow = await api_token(server, application, "application.import")
    response = await send(server, application, bundle_of({**AUTHORITIES, **OTHERS}), narrow)
    assert response.status_code == 422, response.text
    (problem,) = response.json()["validationErrors"]
    assert problem["message"].endswith(
        "the token that was used has no scope for applicationCertificateAuthorities.post."
    )
    assert await bundles_of(server, application) == []
    assert (await send(server, application, bundle_of(OTHERS), narrow)).status_code == 200
    scopes = ("application.import", "applicationCertificateAuthorities.post")
    wide = await api_token(server, application, *scopes)
    assert (await send(server, application, bundle_of(AUTHORITIES), wide)).status_code == 200
    response = await send(server, application, bundle_of(AUTHORITIES), wide, conflictBehavior="replace")
    assert response.status_code == 422
    assert await bundles_of(server, application) == [OTHER.pem.strip()]


async def test_a_template_gives_no_more(start_server: StartServer, tmp_path: Path) -> None:
    body: Json = {"name": "plant CA", "caBundle": OTHER.pem}
    resources = [{"type": "applicationCertificateAuthority", "body": body}]
    path = folder(tmp_path, template(1, resources=resources))
    async with start_server(templates_dir=path) as server:
        farm = await make_farm(server)
        carl, eve = await farm.join("carl", "collaborate"), await farm.join("eve", "edit")
        order = {"templateId": f"{1:024x}"}
        call = ("PATCH", f"{farm.barn}/applyTemplate", order)
        refusal = await server.call(*call, token=carl, status=422)
        assert "needs one of the roles edit, admin" in refusal["validationErrors"][0]["message"]
        assert await bundles_of(server, farm.barn) == []
        await server.call(*call, token=eve, status=200)
        assert await bundles_of(server, farm.barn) == [OTHER.pem.strip()]
