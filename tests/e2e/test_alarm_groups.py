"""Groups of people whom alarm rules tell: who may read the application is told, and who has left is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.actors.fleet.alarms.alarm_house import settled
from tests.e2e.conftest import Server
from tests.e2e.receivers import kept_messages
from tests.e2e.test_roles import make_farm

Json = dict[str, Any]

FAULT: Json = {"type": "event", "level": "error"}


async def told(server: Server, application: str) -> list[str]:
    """Let an alarm open and end; to whom mails of alarms went so far."""
    event = {"level": "error", "subject": "leak"}
    made = await server.call("POST", f"{application}/events", event, status=201)
    await settled(server.system)
    await server.call("PATCH", f"{application}/events/{made['id']}", {"state": "resolved"})
    await settled(server.system)
    mails = kept_messages(Path(server.settings.data_dir))
    return sorted(str(mail["To"]) for mail in mails if "leak" in str(mail["Subject"]))


async def test_people_of_a_group_are_told_as_long_as_they_may_read_the_application(server: Server) -> None:
    farm = await make_farm(server)
    for name in ("ann", "bob", "eve"):
        await farm.join(name, "view")
    other = await server.call("POST", "/applications", {"name": "of the owner"})
    groups = f"{farm.barn}/alarm-groups"
    body = {"name": "night", "emails": ["desk@example.com"], "userIds": [farm.ids["ann"], farm.ids["bob"]]}
    stranger = await server.call("POST", f"/applications/{other['id']}/alarm-groups", body, status=400)
    assert "may not read this application" in stranger["message"]
    group = await server.call("POST", groups, body, status=201)
    assert group["tells"] == ["desk@example.com", "ann@example.com", "bob@example.com"]
    steps = [{"groupIds": [group["id"]], "userIds": [farm.ids["eve"]]}]
    rule = {"name": "fault", "condition": FAULT, "notify": {"steps": steps}}
    made = await server.call("POST", f"{farm.barn}/alarm-rules", rule, status=201)
    missing = {"notify": {"steps": [{"groupIds": [farm.ids["eve"]]}]}}
    refused = await server.call("PATCH", f"{farm.barn}/alarm-rules/{made['id']}", missing, status=400)
    assert "notify.steps[0].groupIds: there is no alarm group" in refused["message"]

    first = ["ann@example.com", "bob@example.com", "desk@example.com", "eve@example.com"]
    assert await told(server, farm.barn) == first
    await farm.change("ann", role="none")
    await server.call("DELETE", f"{farm.org}/member?userId={farm.ids['bob']}")
    shown = await server.call("GET", f"{groups}/{group['id']}")
    assert shown["tells"] == ["desk@example.com"]
    assert shown["untoldUserIds"] == [farm.ids["ann"], farm.ids["bob"]]
    assert await told(server, farm.barn) == sorted([*first, "desk@example.com", "eve@example.com"])

    # Who has left stays where the records are sent back as they were read, and is not taken in anew.
    await server.call("PATCH", f"{groups}/{group['id']}", {"userIds": [*body["userIds"], farm.ids["eve"]]})
    await farm.change("eve", role="none")
    read = await server.call("GET", f"{farm.barn}/alarm-rules/{made['id']}")
    await server.call("PATCH", f"{farm.barn}/alarm-rules/{made['id']}", {"notify": read["notify"]})
    more: list[Json] = [*read["notify"]["steps"], {"userIds": [farm.ids["bob"]], "afterSeconds": 60}]
    refused = await server.call(
        "PATCH", f"{farm.barn}/alarm-rules/{made['id']}", {"notify": {"steps": more}}, status=400
    )
    assert f"notify.steps[1].userIds: the user {farm.ids['bob']} may not read" in refused["message"]

    refused = await server.call("DELETE", f"{groups}/{group['id']}", status=400)
    assert "is told by the alarm rules fault" in refused["message"]
    await server.call("PATCH", f"{farm.barn}/alarm-rules/{made['id']}", {"notify": None}, status=200)
    await server.call("DELETE", f"{groups}/{group['id']}", status=200)


async def test_a_step_that_reaches_nobody_any_more_says_so_and_the_next_one_follows(server: Server) -> None:
    farm = await make_farm(server)
    await farm.join("ann", "view")
    steps = [{"userIds": [farm.ids["ann"]]}, {"afterSeconds": 0.001, "emails": ["desk@example.com"]}]
    rule = {"name": "fault", "condition": FAULT, "notify": {"steps": steps}}
    await server.call("POST", f"{farm.barn}/alarm-rules", rule, status=201)
    await farm.change("ann", role="none")
    assert await told(server, farm.barn) == ["desk@example.com"]
    query = "?query=%7B%22subject%22%3A%7B%22%24startsWith%22%3A%22fault%22%7D%7D"
    (event,) = (await server.call("GET", f"{farm.barn}/events{query}"))["items"]
    comments = [each.get("comment", "") for each in event["updates"]]
    assert comments[0].startswith("Nobody was told of this alarm:")
