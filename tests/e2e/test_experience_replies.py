"""The page with which a version answers stays while it does; and one that is gone holds up nothing else."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Server
from tests.e2e.experience_browser import browser, error, page, static
from tests.e2e.experiences import NO_ID, Experience, Json, new_experience
from tests.e2e.test_bundles import export
from tests.e2e.test_imports import bundle_of, imported, old, send
from trunkline.actors.core.records import records
from trunkline.actors.presentation.experience.kind import DEVELOP
from trunkline.store import keys
from trunkline.store.batch import Batch
from trunkline.store.codec import encode

FIELDS = ("notFoundReply", "unauthorizedReply")
GONE: Json = {"type": "page", "value": NO_ID, "statusCode": 404}


@pytest.fixture
async def exp(server: Server) -> Experience:
    made = await new_experience(server)
    await made.make("slugs", slug="farm")
    return made


async def lose_pages(exp: Experience, id: str = NO_ID) -> None:
    """Store replies of `develop` whose page is gone, as was possible before."""
    await exp.patch("versions/develop", description="d")
    system, application = exp.server.system, bytes.fromhex(exp.application.rpartition("/")[2])
    with system.store.snapshot() as snapshot:
        found = records.find(snapshot, DEVELOP, application, application)
    assert found is not None
    batch, key = Batch(), keys.record_key(DEVELOP.name, application, application)
    replies = {field: {**GONE, "value": id} for field in FIELDS}
    batch.put(keys.RECORDS, key, encode({**found.doc, **replies}))
    await system.journal.submit(batch).wait()


@pytest.mark.parametrize("field", FIELDS)
async def test_a_page_with_which_develop_answers_cannot_be_deleted(exp: Experience, field: str) -> None:
    id = await page(exp, "nf", "not here")
    await exp.patch("versions/develop", **{field: {"type": "page", "value": id.upper()}})
    said = await exp.refused("DELETE", f"views/{id}")
    assert said == f"The {field} of the version develop is this page; change that first."
    await exp.patch("versions/develop", **{field: None})
    await exp.delete(f"views/{id}")


async def test_visitors_get_the_plain_answer_where_the_page_is_gone(exp: Experience) -> None:
    await lose_pages(exp)
    await static(exp, "/own", "", access="authenticated")
    answer = await browser(exp).get("/nowhere")
    assert (answer.status_code, error(answer)) == (404, "No endpoint serves GET /nowhere.")
    assert (await browser(exp).get("/own")).status_code == 401


async def test_a_page_that_is_gone_is_asked_for_by_no_other_change(exp: Experience) -> None:
    await lose_pages(exp)
    changed = await exp.patch("versions/develop", endpointDefaultCors=True)
    assert changed["notFoundReply"] == GONE
    for field in FIELDS:
        assert (await exp.refused("PATCH", "versions/develop", {field: GONE})).startswith(f"{field}.value: ")
    made = await exp.make("versions", version="v1")
    assert made.keys().isdisjoint(FIELDS)
    assert made["endpointDefaultCors"] is True


async def test_an_application_is_cloned_and_restored_without_it(exp: Experience) -> None:
    id = await page(exp, "nf", "not here")
    await exp.make("versions", version="v1")  # it has a copy of the page
    await exp.delete(f"views/{id}")
    await lose_pages(exp, id)
    server = exp.server
    clone = await server.call("POST", f"{exp.application}/clone", {}, status=201)
    bundle = await export(server, exp.application)
    for path in (f"/applications/{clone['application']['id']}", await imported(server, bundle.content)):
        develop = await server.call("GET", f"{path}/experience/versions/develop")
        assert develop.keys().isdisjoint(FIELDS)
        assert develop["description"] == "d"


async def test_an_import_leaves_out_a_reply_whose_page_is_missing(exp: Experience) -> None:
    body = {"notFoundReply": {"type": "page", "value": old(1)}, "description": "d"}
    bundle = bundle_of({"ExperienceDevelopConfig": [{"body": body}]})
    response = await send(exp.server, exp.application, bundle)
    assert response.status_code == 200, response.text
    assert "notFoundReply" not in await exp.get("versions/develop")
    # A page of the bundle, or of the application, stays.
    view = {"id": old(1), "body": {"name": "nf", "viewType": "page", "body": "not here"}}
    response = await send(
        exp.server,
        exp.application,
        bundle_of({"ExperienceView": [view], "ExperienceDevelopConfig": [{"body": body}]}),
    )
    assert response.status_code == 200, response.text
    (id,) = await exp.ids("views")
    assert (await exp.get("versions/develop"))["notFoundReply"]["value"] == id
    assert (await browser(exp).get("/nowhere")).text == "not here"
