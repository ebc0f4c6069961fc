"""Mails of the server have the lines that were meant, also if strangers choose the names in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.actors.core.outgoing.test_mail import BASE64, LINES
from tests.e2e.conftest import Server
from tests.e2e.receivers import MailServer, listening

StartServer = Callable[..., Any]


async def test_the_names_of_others_add_no_lines_to_invitations_and_reports(start_server: StartServer) -> None:
    """A stranger chooses the name of the organization, of the dashboard, and whom it is sent to."""
    async with listening(MailServer()) as mail:
        settings = {"smtp_host": "127.0.0.1", "smtp_port": mail.port, "smtp_tls": "none"}
        async with start_server(**settings) as server:
            await _send_invitation_and_report(server)
            invitation, report = await mail.number(2)
    for mailed, to in ((invitation, "victim@example.com"), (report, "reader@example.com")):
        assert mailed.recipients == [to]
        assert mailed.message.get_all("To") == [to]
        assert not {"bcc", "reply-to", "cc"} & {name.lower() for name in mailed.message.keys()}  # noqa: SIM118
    first_line = invitation.message.get_content().splitlines()[0]
    assert first_line.startswith("owner@example.com invites you to the organization")
    assert LINES in first_line


async def _send_invitation_and_report(server: Server) -> None:
    org = await server.organization(LINES)
    await server.call("POST", f"{org}/invites", {"email": "victim@example.com", "role": "view"}, status=200)
    application = await server.application()
    dashboard = await server.call("POST", f"{application}/dashboards", {"name": BASE64}, status=201)
    order = {"toEmail": ["reader@example.com"], "subject": LINES, "message": "look"}
    await server.call("POST", f"{application}/dashboards/{dashboard['id']}", order, status=202)
