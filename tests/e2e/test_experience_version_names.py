"""The name of a version of an experience is one that its workflows may have as well."""

from __future__ import annotations

import io
import zipfile

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import browser
from tests.e2e.experiences import Experience, new_experience
from tests.e2e.test_bundles import export
from tests.e2e.test_experience_workflows import endpoint, reply, workflow
from tests.e2e.test_imports import imported

VERSION_LINES = "resources/ExperienceVersion.jsonl"


@pytest.mark.parametrize("name", ["default", "DEFAULT", "Develop", "DEVELOP"])
async def test_a_name_that_no_version_of_a_workflow_has_is_reserved(server: Server, name: str) -> None:
    exp = await new_experience(server)
    said = await exp.refused("POST", "versions", {"version": name})
    assert said == f"version: '{name}' is reserved; give another name."
    flow = await workflow(exp, await endpoint(exp), reply(bodyTemplate="x"))
    refusal = await server.call(
        "POST", f"{exp.application}/flows/{flow}/versions", {"version": name}, status=400
    )
    assert refusal["message"] == said


@pytest.mark.parametrize("name", ["default", "Develop"])
async def test_one_that_is_stored_runs_no_workflow_that_is_edited(server: Server, name: str) -> None:
    """It comes from before the name was refused, in a bundle."""
    before = await new_experience(server)
    id = await endpoint(before)
    await workflow(before, id, reply(bodyTemplate="unfinished"))
    await before.make("versions", version="v1")
    bundle = await export(server, before.application)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for entry in bundle.names:
            content = bundle.archive.read(entry)
            archive.writestr(
                entry, content.replace(b'"v1"', f'"{name}"'.encode()) if entry == VERSION_LINES else content
            )
    exp = Experience(server, await imported(server, file.getvalue()))
    await exp.make("slugs", slug="old", version=name)
    await exp.make("slugs", slug="now")
    assert (await browser(exp, "old.localhost").get("/")).status_code == 501
    assert (await browser(exp, "now.localhost").get("/")).text == "unfinished"
