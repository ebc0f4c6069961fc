"""StructureEmailNode sends mails, not too many of them, and not twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.actors.engine.flow_cases import failure, node
from tests.actors.engine.run_house import button, create_flow, kept_runs, press, run_one, runs_end, told
from tests.actors.house import running_house
from tests.e2e.receivers import MailServer, kept_messages, listening
from tests.web_server import Answer, web_server

MAIL = {
    "toAddresses": ["{{data.to}}", "b@example.com"],
    "subjectTemplate": "Alarm: {{data.what}}",
    "bodyTemplate": "<style>p {}</style><p>It is <b>{{data.what}}</b>.</p>",
    "fromTemplate": "answers@example.com",
    "resultPath": "data.result",
}
DATA = {"to": "a@example.com, c@example.com", "what": "too\nhot"}


async def test_each_address_gets_a_mail(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        run = await run_one(house, "StructureEmailNode", MAIL, DATA)
        assert told(run)["data"]["result"] == {"success": True}
        mails = kept_messages(tmp_path / "data")
        assert [each["To"] for each in mails] == ["a@example.com", "c@example.com", "b@example.com"]
        mail = mails[0]
        assert (mail["Subject"], mail["Reply-To"]) == ("Alarm: too hot", "answers@example.com")
        html, plain = mail.get_body(("html",)), mail.get_body(("plain",))
        assert html is not None
        assert plain is not None
        assert "<b>too" in html.get_content()
        assert plain.get_content().split() == ["It", "is", "too", "hot."]


async def test_a_long_mail_arrives_whole(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        words = "word " * 20_000
        run = await run_one(house, "StructureEmailNode", MAIL, {"to": "a@example.com", "what": words})
        assert run.outcome == "completed", run.error
        html = kept_messages(tmp_path / "data")[0].get_body(("html",))
        assert html is not None
        assert html.get_content().count("word") == 20_000


async def test_a_mail_goes_to_the_mail_server(tmp_path: Path) -> None:
    """The addresses that it refuses are named; the others get the mail, wherever they stand."""
    async with listening(MailServer(refused=frozenset({"a@example.com", "b@example.com"}))) as server:
        settings: dict[str, Any] = {"smtp_host": "127.0.0.1", "smtp_port": server.port, "smtp_tls": "none"}
        async with running_house(tmp_path / "data", **settings) as house:
            run = await run_one(house, "StructureEmailNode", MAIL, DATA)
            (mailed,) = await server.number(1)
            assert mailed.recipients == ["c@example.com"]
            refusal = "The mail server refused the recipient: 550 nobody here."
            assert told(run)["data"]["result"]["error"] == {
                "type": "Validation",
                "message": f"The mail to a@example.com was not sent: {refusal} "
                f"The mail to b@example.com was not sent: {refusal}",
            }


async def test_a_workflow_sends_ten_mails_and_then_one_each_minute(tmp_path: Path) -> None:
    async with running_house(tmp_path / "data") as house:
        flow = await create_flow(
            house,
            [button(["m"])],
            [node("m", "StructureEmailNode", {**MAIL, "resultPath": ""}), node("d", "DebugNode")],
        )

        async def outcome() -> str:
            await press(house, flow, {"to": "a@example.com", "what": "x"})
            await runs_end(house)
            return kept_runs(house, flow)[-1].outcome

        assert [await outcome() for _ in range(11)] == ["completed"] * 10 + ["failed"]
        error = kept_runs(house, flow)[-1].error
        assert error is not None
        assert error[2].startswith("This workflow has sent 10 mails; the next one is sent in 60 seconds")
        house.clock.pass_s(60)
        assert [await outcome(), await outcome()] == ["completed", "failed"]
        assert len(kept_messages(tmp_path / "data")) == 22


async def test_a_run_that_is_repeated_sends_nothing_twice(tmp_path: Path) -> None:
    """The server stops after the mail and during a request: the mail is the same one, and so is the request's key."""
    answers = [Answer(200, (), None)]
    async with web_server(lambda _asked: answers[-1]) as server:
        request = {"uriTemplate": server.url, "method": "POST"}
        async with running_house(tmp_path / "data", callback_private_networks=True) as house:
            nodes = [node("m", "StructureEmailNode", MAIL, ["h"]), node("h", "HttpNode", request)]
            flow = await create_flow(house, [button(["m"])], nodes)
            await press(house, flow, DATA)
            await server.number(1)
        answers.append(Answer())
        async with running_house(tmp_path / "data", callback_private_networks=True) as house:
            first, second = await server.number(2)
            assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
        assert len(kept_messages(tmp_path / "data")) == 3


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"toAddresses": []}, "ValidationError", "config.toAddresses: give a list of addresses"),
        ({"subjectTemplate": ""}, "ValidationError", "config.subjectTemplate: is not set"),
        ({}, "NotInDryRun", "This node needs a server"),
    ],
)
async def test_what_cannot_be_sent(changes: dict[str, Any], name: str, message: str) -> None:
    told_name, told_message = await failure("StructureEmailNode", MAIL | changes, DATA)
    assert told_name == name
    assert told_message.startswith(message)


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ("nobody", "config.toAddresses: is not an address that a message can be sent to"),
        ("a@x.org,b@x.org,c@x.org,d@x.org,e@x.org", "config.toAddresses: gives 6 addresses; give 1 to 5."),
    ],
)
async def test_addresses_are_checked(tmp_path: Path, to: str, message: str) -> None:
    async with running_house(tmp_path / "data") as house:
        run = await run_one(house, "StructureEmailNode", MAIL, {"to": to, "what": "x"})
        problem = told(run)["data"]["result"]["error"]
        assert problem["type"] == "Validation"
        assert problem["message"].startswith(message)
        assert not (tmp_path / "data" / "outbox").exists()
