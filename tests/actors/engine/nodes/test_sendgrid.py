"""SendgridEmailNode gives mails to the service, with the account of a credential or of the node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.actors.engine.flow_cases import failure
from tests.actors.engine.run_house import add_credential, run_one, told
from tests.actors.house import House, running_house
from tests.web_server import Answer, Asked, WebServer, web_server
from trunkline.limits.errors import SettingsError
from trunkline.limits.settings import Settings

KEY = "SG.planted-0123456789"
MAIL = {
    "credentialNameTemplate": "mails",
    "fromTemplate": "alerts@example.com",
    "subjectTemplate": "Alarm: {{data.what}}",
    "bodyTemplate": "<p>{{data.what}}</p>",
    "toAddresses": ["{{data.to}}", "b@example.com"],
    "ccAddresses": ["B@example.com, c@example.com"],
    "bccAddresses": ["c@example.com"],
    "replyToTemplate": "help@example.com",
    "resultPath": "data.result",
}
DATA = {"to": "a@example.com", "what": "too hot"}


def answer(asked: Asked) -> Answer:
    if b"refused" in asked.body:
        errors = {"errors": [{"message": f"the key {KEY} may not send mails", "field": None}]}
        return Answer(401, body=msgspec.json.encode(errors))
    return Answer(500, body=b"busy") if b"busy" in asked.body else Answer(202)


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with web_server(answer) as server:
        yield server


@pytest.fixture
async def house(tmp_path: Path, server: WebServer) -> AsyncIterator[House]:
    async with running_house(tmp_path / "data", sendgrid_url=server.url) as house:
        await add_credential(house, "mails", type="sendgrid", sendgridConfig={"apiKey": KEY})
        yield house


async def test_the_service_gets_the_mail(house: House, server: WebServer) -> None:
    run = await run_one(house, "SendgridEmailNode", MAIL, DATA)
    assert told(run)["data"]["result"] == {"success": True}
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("POST", "/v3/mail/send")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert msgspec.json.decode(asked.body) == {
        "personalizations": [
            {
                "to": [{"email": "a@example.com"}, {"email": "b@example.com"}],
                "cc": [{"email": "c@example.com"}],
            }
        ],
        "from": {"email": "alerts@example.com"},
        "reply_to": {"email": "help@example.com"},
        "subject": "Alarm: too hot",
        "content": [{"type": "text/html", "value": "<p>too hot</p>"}],
    }
    assert KEY.encode() not in msgspec.json.encode(told(run))


async def test_a_long_mail_with_the_key_of_the_node(house: House, server: WebServer) -> None:
    given = {**MAIL, "credentialNameTemplate": "", "sendgridApiKey": "SG.own"}
    run = await run_one(house, "SendgridEmailNode", given, {**DATA, "what": "word " * 20_000})
    assert run.outcome == "completed", run.error
    (asked,) = server.asked
    assert asked.headers["authorization"] == "Bearer SG.own"
    assert msgspec.json.decode(asked.body)["content"][0]["value"].count("word ") == 20_000


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("refused", "SendGrid answered with 401: the key (hidden) may not send mails"),
        ("busy", "SendGrid answered with 500."),
    ],
)
async def test_what_is_not_accepted_is_told(house: House, what: str, message: str) -> None:
    run = await run_one(house, "SendgridEmailNode", MAIL, {**DATA, "what": what})
    error = {"type": "Validation", "message": f"The mail was not sent: {message}"}
    assert told(run)["data"]["result"] == {"error": error}
    run = await run_one(house, "SendgridEmailNode", {**MAIL, "resultPath": ""}, {**DATA, "what": what})
    assert run.outcome == "failed"
    assert run.error is not None
    assert message in run.error[2]


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"attachments": [{}]}, "ValidationError", "config.attachments: this server sends no attachments"),
        ({"credentialNameTemplate": ""}, "ValidationError", "config.credentialNameTemplate: is not set"),
        ({"toAddresses": []}, "ValidationError", "config.toAddresses: give a list of addresses"),
        ({"bodyTemplate": ""}, "ValidationError", "config.bodyTemplate: is not set"),
        ({"ccAddresses": ["nobody"]}, "Validation", "config.ccAddresses: is not an address"),
        (
            {"toAddresses": ["{{data.none}}"]},
            "Validation",
            "config.toAddresses: gives 0 addresses; give 1 to 1000.",
        ),
        ({"replyToTemplate": "a b"}, "Validation", "config.replyToTemplate: is not an address"),
        (
            {"credentialNameTemplate": "other"},
            "CredentialError",
            "config.credentialNameTemplate: the application has no",
        ),
        (
            {"credentialNameTemplate": "", "sendgridApiKey": "planted"},
            "Validation",
            "config.sendgridApiKey: gives no API key of SendGrid, which begins with SG.",
        ),
        (
            {"credentialNameTemplate": "", "sendgridApiKey": "SG.a\nb"},
            "Validation",
            "config.sendgridApiKey: the API key has a character that no key has.",
        ),
    ],
)
async def test_what_cannot_be_sent(
    house: House, server: WebServer, changes: dict[str, Any], name: str, message: str
) -> None:
    run = await run_one(house, "SendgridEmailNode", {**MAIL, **changes}, DATA)
    if name != "Validation":
        assert run.error is not None
        assert run.error[1] == name
        shown = run.error[2]
    else:
        shown = told(run)["data"]["result"]["error"]["message"]
    assert shown.startswith(message)
    assert "planted" not in shown
    assert server.asked == []


async def test_a_dry_run_sends_nothing() -> None:
    given = {**MAIL, "credentialNameTemplate": "", "sendgridApiKey": "SG.own", "resultPath": ""}
    assert (await failure("SendgridEmailNode", given, DATA))[0] == "NotInDryRun"


def test_keys_are_sent_to_no_url_without_tls() -> None:
    with pytest.raises(SettingsError, match="sendgrid_url"):
        Settings(sendgrid_url="http://mails.example.com")
