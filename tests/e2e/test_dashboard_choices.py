"""A block of a dashboard whose choice leads to nothing shows nothing, rather than all devices."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.e2e.test_dashboard_data import made, parts
from tests.e2e.test_reports import AT_MS, block, farm, job_of, mails, words

Json = dict[str, Any]
TAG = {"key": "room", "value": "1"}
ROOM = {"name": "room", "type": "deviceTag", "defaultValue": TAG, "validationEnabled": True}
NUMBER = {"name": "n", "type": "number", "defaultValue": 1}
NORTH = {"name": "who", "type": "string", "defaultValue": "north"}
FROM_CTX = [{"fromCtx": "room"}]
FROM_TEXT = [{"key": "room", "value": "{{ctx.n}}"}]
SEGMENT = {"attribute": "temp", "deviceTags": FROM_CTX}
BLOCKS = [
    block(0, "device-state-table", "states", {"attributes": ["temp"], "deviceTags": FROM_CTX}),
    block(1, "gauge", "gauge", {"segment": SEGMENT}),
    block(2, "bar", "bar", {"segments": [SEGMENT]}),
    block(3, "device-list", "list", {"filter": {"tags": FROM_CTX}}),
    block(4, "device-list", "search", {"filter": {"searchParam": "{{ctx.who}}"}}),
    block(5, "device-list", "query", {"query": '{"name": {"$startsWith": "{{ctx.who}}"}}'}),
    block(6, "device-state-table", "text", {"attributes": ["temp"], "deviceTags": FROM_TEXT}),
]
PROBLEM = "The dashboard has no parameter room of the type deviceTag, which chooses the devices."


async def shown(server: Server, path: str) -> dict[str, str]:
    """The problem of each block by its title, without a token."""
    answer = await server.call("POST", f"{path}/data", {}, token="")
    return {each["title"]: each.get("problem", "") for each in answer["blocks"]}


async def test_a_parameter_that_is_gone_chooses_no_device(server: Server) -> None:
    application, _ = await farm(server)
    path = await made(
        server, application, BLOCKS, public=True, refreshRate=5, contextConfiguration=[ROOM, NUMBER, NORTH]
    )
    of_all = await parts(server, path, {}, token="")
    assert "south" not in str(of_all)
    assert all("north" in str(of_all[title]) for title in ("states", "list", "search", "query", "text"))
    changes: list[list[Json]] = [
        [{**ROOM, "name": "site"}],
        [],
        [{"name": "room", "type": "string", "defaultValue": "1"}, {**ROOM, "name": "who"}],
    ]
    for changed in changes:
        await server.call("PATCH", path, {"contextConfiguration": changed})
        found = await shown(server, path)
        for title in ("states", "gauge", "bar", "list"):
            assert found.pop(title) == PROBLEM, (changed, title)
        leads_to_nothing = "'{{ctx.who}}' leads to nothing that is a text; name a parameter that has a value."
        assert (found.pop("search"), found.pop("query")) == (leads_to_nothing, leads_to_nothing)
        gives_nothing = "'{{ctx.n}}' gives nothing, so it chooses nothing; name a parameter that has a value."
        assert found == {"text": gives_nothing}


async def test_an_empty_value_of_a_tag_is_400(server: Server) -> None:
    application, _ = await farm(server)
    path = await made(server, application, BLOCKS, public=True, contextConfiguration=[ROOM, NUMBER, NORTH])
    for token in (None, ""):
        refusal = await server.call("POST", f"{path}/data", {"ctx": {"room": {}}}, token=token, status=400)
        assert refusal["message"] == (
            'ctx.room: needs a key, a value, or both, such as {"key": "room", "value": "kitchen"}.'
        )
    # Whoever writes the dashboard may leave the choice open.
    await server.call("PATCH", path, {"contextConfiguration": [{**ROOM, "defaultValue": {}}, NUMBER, NORTH]})
    answer = await parts(server, path, {}, token="")
    assert "south" in str(answer["states"])
    answer = await parts(server, path, {"ctx": {"room": TAG}}, token="")
    assert "south" not in str(answer["states"])


@pytest.mark.parametrize("query", ["{{ctx.gone}}", "{{ctx.who}}", '{"name": {"$contains": "{{ctx.gone}}"}}'])
async def test_a_query_that_is_filled_in_with_nothing_chooses_nothing(server: Server, query: str) -> None:
    application, _ = await farm(server)
    config = {"attributes": ["temp"], "query": query}
    parameters = [{**NORTH, "defaultValue": ""}]
    path = await made(
        server,
        application,
        [block(0, "device-state-table", "t", config)],
        public=True,
        contextConfiguration=parameters,
    )
    problem = (await shown(server, path))["t"]
    assert "name a parameter that has a value" in problem


async def test_a_report_shows_no_more(server: Server) -> None:
    application, _ = await farm(server)
    path = await made(server, application, BLOCKS, contextConfiguration=[NUMBER, NORTH])
    order = {"toEmail": ["a@example.com"], "time": AT_MS}
    await job_of(server, application, await server.call("POST", f"{application}{path}", order, status=202))
    (mail,) = await mails(server)
    assert words(mail).count(PROBLEM) == 4
    assert "south" not in words(mail)


async def test_a_default_that_is_gone_is_a_problem_of_the_blocks_that_name_it(server: Server) -> None:
    application, north = await farm(server)
    person = {"email": "a@example.com", "password": "Correct-horse-8"}
    user = (await server.call("POST", f"{application}/experience/users", person))["id"]
    parameters: list[Json] = [
        {"name": "dev", "type": "deviceId", "defaultValue": north, "validationEnabled": True},
        {"name": "who", "type": "experienceUser", "defaultValue": user, "validationEnabled": True},
    ]
    blocks = [
        block(0, "section-header", "free", {"content": "dev, {{ctx.devices}}"}),
        block(1, "gauge", "chosen", {"segment": {"attribute": "temp", "deviceIds": ["{{ctx.dev}}"]}}),
        block(2, "section-header", "named", {"content": "Hello {{ctx.who}}"}),
        block(3, "bar", "computed", {"segments": [{"attribute": "temp", "expression": "{{ctx.[dev]}}"}]}),
    ]
    path = await made(server, application, blocks, contextConfiguration=parameters, public=True)
    await parts(server, path)
    await server.call("DELETE", f"{application}/devices/{north}")
    await server.call("DELETE", f"{application}/experience/users/{user}")
    south = await server.call("GET", f"{application}/devices?filterField=name&filter=south")
    given = {"dev": south["items"][0]["id"]}
    gone = f"ctx.dev: '{north}' is the id of no device of the application."
    said = f"{gone} That is its default; give it another value."
    no_user = f"ctx.who: '{user}' is the id of no experience user of the application."
    assert await shown(server, path) == {
        "free": "",
        "chosen": said,
        "named": f"{no_user} That is its default; give it another value.",
        "computed": said,
    }
    answer = await server.call("POST", f"{path}/data", {"ctx": given}, token="")
    assert [each["title"] for each in answer["blocks"] if "problem" in each] == ["named"]
    # What the caller gives is refused, and the values are checked with their defaults where somebody asks for that.
    for call, body in (("data", {"ctx": {"dev": north}}), ("validateContext", {})):
        refusal = await server.call("POST", f"{path}/{call}", body, status=400)
        assert refusal["message"] == gone
    at = f"{application}{path}"
    order = {"toEmail": ["a@example.com"], "time": AT_MS}
    log = await job_of(server, application, await server.call("POST", at, order, status=202))
    assert log["status"] == "completed", log
    (mail,) = await mails(server)
    assert said in words(mail)
