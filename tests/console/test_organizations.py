"""The pages of organizations: members with roles, invitations from both sides, and the audit log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.console.console_page import ConsolePage, console_page
from tests.e2e.conftest import EMAIL, PASSWORD, Server
from trunkline.actors import server_users

pytestmark = pytest.mark.slow

OTHER = "other@example.com"


async def test_somebody_is_invited_and_gets_roles(
    chromium: None, server: Server, console: ConsolePage, tmp_path: Path
) -> None:
    for email in (EMAIL, OTHER):
        if email == OTHER:
            await server_users.add_user(server.system, OTHER, PASSWORD)
        await server_users.verify_email(server.system, email)
    await console.go("#/organizations")
    await console.sees("There are no organizations yet")
    await console.at("button", "Create an organization", nth=0).click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^Name")).fill("farm")
    await form.at("button", "Create").click()
    await console.sees("1 member")
    org = "/orgs/" + (await console.place()).rpartition("/")[2]
    await server.call("POST", "/applications", {"name": "barn", "orgId": org[6:]})
    await console.at("link", "Invite somebody").click()
    await console.sees("There are no open invitations")
    await console.at("button", "Invite somebody").click()
    await form.at("textbox", "E-mail address").fill(OTHER)
    await form.at("combobox", "Role").choose("none: only what is given below")
    await form.at("combobox", "Add a role in an application").choose("barn")
    await form.at("button", "Invite").click()
    await console.sees("The mail with the invitation is sent.")
    await console.sees(OTHER)

    async with console_page(server.url, tmp_path / "other", place="#/organizations") as theirs:
        await theirs.log_in(OTHER, PASSWORD)
        await theirs.sees("farm with the role none")
        await theirs.at("button", "Accept").click()
        await theirs.sees("You belong to farm.")
        await theirs.at("link", "farm").click()
        await theirs.sees("Your role in this organization shows no members.")
        # What the role does not allow is not offered, and the page says who can alter that.
        await theirs.go("#/applications")
        await theirs.at("link", "barn").click()
        await theirs.sees("You may read this application and change nothing: your role in farm is view.")
        await theirs.sees(f"An administrator can give you another one: {EMAIL}.")
        await theirs.at("link", "Workflows").click()
        await theirs.sees("There are no workflows yet")
        assert await theirs.at("button", re.compile("Create|Import")).count() == 0
        await theirs.at("link", "Settings").click()
        await theirs.at("textbox", re.compile("^Name")).shown()
        assert await theirs.at("button", re.compile("Save|Delete|Transfer")).count() == 0
        (barn,) = (await server.call("GET", "/applications?filterField=name&filter=barn"))["items"]
        device = await server.device(f"/applications/{barn['id']}")
        for tab, shown in (
            ("commands", "No command was sent"),
            ("settings", "label"),
            ("connect", "Connect this"),
        ):
            await theirs.go(f"#{device}/{tab}")
            await theirs.sees(shown)
            buttons = theirs.at("button", re.compile("Send|Delete|Remove|Change|Save|Declare|Make an"))
            assert await buttons.count() == 0

        await console.at("link", "Members").click()
        await console.reload()
        await console.sees("2 members")
        await console.sees("1 application with another role")
        await console.at("button", f"Roles of {OTHER}").click()
        await form.at("button", "Remove the role in barn").click()
        await form.at("combobox", "Role").choose("view: read everything")
        await form.at("button", "Save").click()
        await console.sees("The roles are saved.")
        members = {each["email"]: each for each in (await server.call("GET", org))["members"]}
        assert members[OTHER]["role"] == "view"
        assert members[OTHER]["applicationRoles"] == []
        board = await server.call("POST", "/dashboards", {"name": "board", "orgId": org[6:]})
        offered = theirs.at("button", re.compile("Share|Edit|Change|Delete|Add a block"))
        await theirs.go(f"#/dashboards/{board['id']}?edit=blocks")
        await theirs.sees("You may read this dashboard and change nothing: your role in farm is view.")
        assert await offered.count() == 0

        # Who may add devices but make no access keys has the device, and is told so.
        await server.call(
            "PATCH", f"{org}/member", {"userId": members[OTHER]["userId"], "role": "collaborate"}
        )
        await theirs.go(f"#/dashboards/{board['id']}")
        await theirs.reload()
        await offered.counts(5)
        await theirs.at("button", "Delete").gone()
        await theirs.go(f"#/applications/{barn['id']}/devices/add")
        await theirs.at("textbox", "Name").fill("mast")
        await theirs.at("textbox", "What it reports").fill("wind=number m/s")
        async with theirs.expecting("status of 403"):
            await theirs.at("button", "Create the device").click()
            await theirs.sees("mast is created, without an access key:")
        await theirs.at("link", "Connect this device").click()
        await theirs.sees("Your role does not allow access keys.")

        await theirs.go(f"#/organizations/{org[6:]}")
        await theirs.at("button", "Leave").click()
        await theirs.at("dialog").at("button", "Leave").click()
        await theirs.sees("There are no organizations yet")


async def test_the_audit_log_says_what_a_call_changed(server: Server, console: ConsolePage) -> None:
    org = (await server.organization("farm")).rpartition("/")[2]
    made = await server.call("POST", "/applications", {"name": "barn", "orgId": org})
    application = f"/applications/{made['id']}"
    await server.call("PATCH", application, {"name": "stable"})
    await server.call("PATCH", application, {"name": ""}, status=400)
    await console.go(f"#/organizations/{org}/audit")
    await console.sees("application.patch")
    await console.at("textbox", "Operation").fill("application.patch")
    await console.at("textbox", "Status").fill("200")
    await console.at("button", "Filter").click()
    await console.sees("1 entry")
    await console.at(css="tr[data-href] a").click()
    await console.at(css="tbody tr").says('name "barn" "stable"')
    await console.reload()
    await console.sees("Fields of the call")
    await console.at("link", "All entries").click()
    await console.sees("1 entry")
    await console.at("textbox", "Status").fill("many")
    await console.at("button", "Filter").click()
    await console.sees('The status is "many"; it must be a number such as 403.')
    await console.at(css="tbody tr").gone()
    await console.at("button", "Remove the filter").click()
    await console.sees("entries")


async def test_an_organization_is_changed_and_deleted(server: Server, console: ConsolePage) -> None:
    org = await server.organization("farm")
    await console.go(f"#/organizations/{org[6:]}/settings")
    await console.at("button", "Change").click()
    form = console.at("dialog")
    await form.at("textbox", re.compile("^Description")).fill("Who looks after it.")
    await form.at("button", "Save").click()
    await form.gone()
    assert (await server.call("GET", org))["description"] == "Who looks after it."
    # Nobody may require of others what they lack themselves.
    await console.at("button", "Change").click()
    await form.at("combobox", re.compile("^Two-factor")).choose("required from all members")
    async with console.expecting("status of 400"):
        await form.at("button", "Save").click()
        await form.says("mfaMode: ")
    await form.at("button", "Cancel").click()
    # It has to own nothing.
    await server.call("POST", "/applications", {"name": "barn", "orgId": org[6:]})
    await console.at("button", "Delete the organization").click()
    await form.at("textbox").fill("farm")
    async with console.expecting("status of 4"):
        await form.at("button", "Delete").click()
        await form.at("alert").shown()
    await form.at("button", "Cancel").click()
    await console.at("button", "Transfer to another owner").click()
    await form.at("checkbox", "barn").click()
    await form.at("combobox", "New owner").choose("yourself")
    await form.at("button", "Transfer").click()
    await console.sees("Transferred: 1 application.")
    await console.at("button", "Delete the organization").click()
    await form.at("textbox").fill("farm")
    await form.at("button", "Delete").click()
    await console.sees("There are no organizations yet")
