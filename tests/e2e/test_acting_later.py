"""The table of what acts later: each right is taken away, and nothing acts with it any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final

import pytest

from tests.actors.job_desk import Held
from tests.e2e.conftest import Server
from tests.e2e.test_dashboard_rights import events_of, problem
from tests.e2e.test_invitations import mail_to
from tests.e2e.test_mandates import CREATE, answer, api, press, refusal, save
from tests.e2e.test_reports import job_of
from tests.e2e.test_roles import make_farm
from tests.e2e.test_webhooks import send, webhook
from trunkline.actors import server_users
from trunkline.actors.acting_later import ACTING
from trunkline.actors.platform.jobs.queue import JobQueue
from trunkline.actors.platform.jobs.runner import Jobs

StartServer = Callable[..., Any]
Walk = Callable[[Server], Awaitable[None]]


async def workflow(server: Server) -> None:
    farm = await make_farm(server)
    flow = await save(server, farm.barn, await farm.join("carol", "collaborate"), CREATE)
    assert (await press(server, flow)).outcome == "completed"
    await farm.change("carol", role="view")
    assert "carol@example.com" in refusal(await press(server, flow))


async def token_node(server: Server) -> None:
    application = await server.application()
    made = await server.call("POST", f"{application}/tokens", {"name": "t"})
    node = api("devices", "get")
    node["config"] |= {"apiTokenTemplate": made["token"]}
    flow = await save(server, application, None, node)
    assert "result" in answer(await press(server, flow))
    await server.call("DELETE", f"{application}/tokens/{made['id']}")
    assert answer(await press(server, flow))["error"]["statusCode"] == 401


async def dashboard(server: Server) -> None:
    farm = await make_farm(server)
    token = await farm.join("eve", "edit")
    body = {"name": "open", "orgId": farm.org_id, "public": True, "blocks": [events_of(farm.mill)]}
    path = f"/dashboards/{(await server.call('POST', '/dashboards', body, token=token))['id']}"
    assert await problem(server, path) is None
    await server.call("DELETE", f"{farm.org}/member?userId={farm.ids['eve']}")
    assert await problem(server, path)


async def hook(server: Server) -> None:
    made = await webhook(server)
    assert (await send(server, made["address"])).status_code == 200
    await server.call("DELETE", made["path"])
    assert (await send(server, made["address"])).status_code == 404


async def key(server: Server) -> None:
    device = await server.device(await server.application())
    token, path = await server.device_token(device)
    await server.call("GET", device, token=token, status=200)
    await server.call("PATCH", path, {"status": "inactive"})
    await server.call("GET", device, token=token, status=401)


async def invitation(server: Server) -> None:
    org = await server.organization()
    await server_users.add_user(server.root, "eve@example.com", "Other-horse-9")
    await server.call("POST", f"{org}/invites", {"email": "eve@example.com", "role": "view"})
    body = {"email": "eve@example.com", "token": mail_to(server, "eve@example.com")[1], "accept": True}
    (invite,) = await server.call("GET", f"{org}/invites")
    await server.call("DELETE", f"{org}/invites?inviteId={invite['id']}")
    async with server.client("") as client:
        assert (await client.post("/invites", json=body)).status_code >= 400


WALKS: Final[dict[str, Walk | str]] = {
    "Workflows": workflow,
    "`LosantApiNode`": token_node,
    "Dry runs": "e2e.test_mandates.test_a_dry_run_reads_in_the_name_of_its_caller",
    "Dashboards": dashboard,
    "Reports": "e2e.test_reports.test_a_revoked_token_gets_no_report",
    "Jobs": "e2e.test_acting_later.test_a_job_needs_the_right_of_who_queued_it_when_it_begins",
    "Imports": "e2e.test_mandates.test_what_comes_from_elsewhere_acts_for_who_brought_it",
    "The deletion": "e2e.test_files.test_a_directory_is_deleted_by_a_job_that_the_log_shows",
    "Webhooks": hook,
    "Streams of topics": "e2e.test_experience_streams.test_an_answer_ends_before_an_event_that_its_visitor_may_not_see",
    "Integrations": "e2e.test_integrations.test_messages_of_a_deleted_integration_end_its_connection",
    "Notices of alarms": "actors.fleet.alarms.test_notices.test_nobody_is_told_any_more_when_the_rule_is_gone",
    "Access keys": key,
    "Wills and sessions": "e2e.test_mqtt_wills.test_a_will_ends_with_the_key_of_its_client",
    "Experience users": "actors.presentation.experience.test_tokens.test_tokens_end_with_the_user_or_a_cutoff",
    "Invitations": invitation,
    "Links": "e2e.test_file_contents.test_contents_go_with_their_records",
    "Transfers": "e2e.test_transfers.test_a_transfer_that_is_not_allowed_changes_nothing",
}
"""What walks through each row, by its first words: a function here, or a test of its own."""


def test_each_row_is_walked() -> None:
    assert len(WALKS) == len(ACTING)
    for (words, walk), row in zip(WALKS.items(), ACTING, strict=True):
        assert row.what.startswith(words)
        if isinstance(walk, str):
            file, _, name = walk.rpartition(".")
            assert hasattr(import_module(f"tests.{file}"), name), walk


@pytest.mark.parametrize("words", [words for words, walk in WALKS.items() if not isinstance(walk, str)])
async def test_what_acts_later_ends_with_its_right(server: Server, words: str) -> None:
    walk = WALKS[words]
    assert not isinstance(walk, str)
    await walk(server)


async def test_a_job_needs_the_right_of_who_queued_it_when_it_begins(start_server: StartServer) -> None:
    async with start_server() as server:
        farm = await make_farm(server)
        token = await farm.join("carol", "collaborate")
        device = await server.device(farm.barn)
        await server.system.component(Jobs).stop()
        queued = await server.call("POST", f"{device}/export", {}, token=token, status=202)
        await farm.change("carol", role="none")
    async with start_server() as server:
        log = await job_of(server, farm.barn, queued)
        assert (log["status"], log["error"]["name"]) == ("errored", "Forbidden")


async def test_a_job_that_works_ends_with_the_right_of_who_queued_it(start_server: StartServer) -> None:
    async with start_server(limits={"job_progress_s": 0.001}) as server:
        farm = await make_farm(server)
        token = await farm.join("carol", "collaborate")
        device = await server.device(farm.barn)
        work, kinds = Held(), server.system.component(JobQueue).kinds
        kinds["device.export"] = kinds["device.export"]._replace(run=work)
        queued = await server.call("POST", f"{device}/export", {}, token=token, status=202)
        await work.began.wait()
        await farm.change("carol", role="none")
        log = await job_of(server, farm.barn, queued)
        assert (log["status"], log["error"]["name"]) == ("errored", "Forbidden")
