"""The examples of the API's document work on a demo as they stand, those of `/docs` among them.

Each operation is called once, with what its page has filled in and nothing else. What deletes comes last, the
innermost first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyotp
import pytest
import trio

from tests.e2e.receivers import kept_messages, link_in
from tests.e2e.server_process import OWNER, ServerProcess, started, trunkline
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

Json = dict[str, Any]
NEED_ANOTHER_SERVER = frozenset(
    {"auth.authenticateUserSaml", "auth.authenticateUserCodehost", "me.connectCodehost"}
)
"""They are refused where no identity provider and no code host is configured."""
CONTENT = b"text"
"""What is sent as a file."""
NOT_EXECUTED = {
    f"{of}.{what}": status
    for of in ("notebook", "resourceJob")
    for what, status in (("execute", 501), ("cancelExecution", 404))
} | {"device.link": 426, "mqtt.open": 426, "auth.continueLogin": 403}
"""They say that this server executes nothing, or needs WebSocket or a browser with a login; and with which status."""
COLLEAGUE, PASSWORD = "colleague@example.com", "Another-horse-8"

ANY_FIELDS = {"dashboard.validateContext"}
"""Operations whose body may have any field: values of parameters that the dashboard need not have."""


class Example:
    """One operation of a served document, with what its examples say."""

    def __init__(self, path: str, method: str, operation: Json, schemas: Json) -> None:
        self.operation = operation
        self.id: str = operation["operationId"]
        self.method = method.upper()
        self.template = path
        parameters = [each for each in operation["parameters"] if "example" in each]
        self.query = {each["name"]: each["example"] for each in parameters if each["in"] == "query"}
        self.path = path.format(
            **{each["name"]: each["example"] for each in parameters if each["in"] == "path"}
        )
        content = operation.get("requestBody", {}).get("content", {})
        self.body: Any = content.get("application/json", {}).get("example")
        form = content.get("multipart/form-data")
        self.fields: dict[str, str] = {} if form is None else form.get("example", {})
        self.file: str | None = None
        """The name of the file in the form."""
        self.content = CONTENT
        if form is not None:
            properties = schemas[form["schema"]["$ref"].rpartition("/")[2]]["properties"]
            (self.file,) = [name for name, each in properties.items() if each.get("format") == "binary"]
        self.is_stream = "text/event-stream" in operation["responses"].get("200", {}).get("content", {})

    @property
    def order(self) -> tuple[bool, bool, bool, int, bool]:
        """Its place in the run."""
        removes = self.method == "DELETE" and not self.id.startswith("webhookAddress.")
        deletes = removes or self.path.endswith(("/delete", "/truncate"))
        return (
            self.id == "me.delete",
            self.id == "me.logout",
            deletes,
            -self.path.count("/") if deletes else 0,
            self.method != "DELETE",
        )


async def run(client: httpx.AsyncClient, example: Example) -> httpx.Response:
    """Call the operation. Of a stream only the beginning is read: an event, or the first comment."""
    given: Json = {"params": example.query} | ({} if example.body is None else {"json": example.body})
    if example.file is not None:
        given |= {"data": example.fields, "files": {example.file: ("a.txt", example.content)}}
    if not example.is_stream:
        return await client.request(example.method, example.path, **given)
    beginning = b"event: deviceState" if example.path.endswith("/stateStream") else b":"
    async with client.stream(example.method, example.path, **given) as response:
        said = b""
        async for piece in response.aiter_bytes():
            said += piece
            if beginning in said:
                return response
    raise AssertionError(f"{example.id}: the stream ended without {beginning!r}: {said!r}")


async def ended_job(client: httpx.AsyncClient, path: str) -> Json:
    """The job at this path when it has ended."""
    with trio.fail_after(PATIENCE_S):
        while True:
            job: Json = (await client.get(path)).json()
            if job["status"] not in ("queued", "inProgress"):
                return job


async def fill_in_file(client: httpx.AsyncClient, examples: dict[str, Example]) -> None:
    """Upload a file by its form, and give the examples the form and the link."""
    path = examples["privateFiles.post"].path
    file = {"name": "a.txt", "type": "file", "fileSize": len(CONTENT)}
    made = (await client.post(path, json=file)).json()
    upload = examples["uploads.post"]
    upload.fields = made["upload"]["fields"]
    assert (await run(client, upload)).is_success
    link = (await client.get(f"{path}/{made['id']}")).json()["url"]
    examples["contents.get"].query["token"] = token_of(link)


async def fill_in(client: httpx.AsyncClient, examples: dict[str, Example], data_dir: Path) -> None:
    """Give the examples that need a secret what a reader has to put there."""
    email, password = OWNER["TRUNKLINE_ADMIN_EMAIL"], OWNER["TRUNKLINE_ADMIN_PASSWORD"]
    examples["auth.authenticateUser"].body |= {"email": email, "password": password}
    change = examples["me.changePassword"].body
    change["password"] = password
    for name in ("me.enableTwoFactorAuth", "me.disableTwoFactorAuth", "me.delete"):
        examples[name].body["password"] = change["newPassword"]
    examples["me.delete"].body["email"] = email
    # The dashboard of the demo belongs to its application.
    org_id = examples["org.get"].path.removeprefix("/orgs/")
    for name, owner in (("me.transferResources", {}), ("org.transferResources", {"orgId": org_id})):
        board = (await client.post("/dashboards", json={"name": "to be given away", **owner})).json()
        examples[name].body["dashboardIds"] = [board["id"]]
    await run(client, examples["me.verifyEmail"])
    (mail,) = [each for each in kept_messages(data_dir) if each["Subject"].startswith("Verify")]
    assert (await client.post(link_in(mail))).is_success
    for name in ("auth.verifyEmailPage", "auth.verifyEmail"):
        examples[name].query["token"] = token_of(link_in(mail))
    device = examples["auth.authenticateDevice"].body
    key = (await run(client, examples["applicationKeys.post"])).json()
    device |= {"key": key["key"], "secret": key["secret"]}
    job = await ended_job(client, examples["applicationJobLog.get"].path)
    examples["downloads.get"].query["token"] = token_of(job["output"]["file"]["url"])
    await fill_in_file(client, examples)
    bundle = (await client.get((await run(client, examples["application.export"])).json()["url"])).content
    for name in ("applications.import", "application.import"):
        examples[name].content = bundle
    webhook = (await run(client, examples["webhook.get"])).json()
    for example in examples.values():
        if example.id.startswith("webhookAddress."):
            example.path = f"/webhooks/{webhook['token']}"


def token_of(link: str) -> str:
    return parse_qs(urlsplit(link).query)["token"][0]


def fill_in_code(example: Example, answers: dict[str, httpx.Response]) -> None:
    """Give an example with a second factor the code that follows from an earlier answer."""
    if example.id == "me.enableTwoFactorAuth":
        key = answers["me.generateTwoFactorAuth"].json()["key"]
        example.body["twoFactorCode"] = pyotp.TOTP(key).now()
    elif example.id == "me.disableTwoFactorAuth":
        example.body["twoFactorCode"] = answers["me.enableTwoFactorAuth"].json()["recoveryCodes"][0]
    elif example.id == "org.revokeInvite":
        example.query["inviteId"] = answers["org.inviteMember"].json()[-1]["id"]


async def fill_in_colleague(server: ServerProcess, examples: dict[str, Example], data_dir: Path) -> None:
    """Let the second user send an invitation, and give the examples what depends on a second user."""
    token = await server.log_in(COLLEAGUE, PASSWORD)
    org = await server.call("POST", "/orgs", {"name": "theirs"}, token=token)
    invite = {"email": OWNER["TRUNKLINE_ADMIN_EMAIL"], "role": "view"}
    (sent,) = await server.call("POST", f"/orgs/{org['id']}/invites", invite, token=token)
    for name in ("me.invite", "me.respondToInvite"):
        examples[name].path = f"/me/invites/{sent['id']}"
    (mail,) = [each for each in kept_messages(data_dir) if each["To"] == COLLEAGUE]
    (answer,) = [json.loads(line) for line in mail.get_content().splitlines() if line.startswith("{")]
    examples["orgInvites.get"].query["token"] = examples["orgInvites.post"].body["token"] = answer["token"]
    colleague = org["members"][0]["userId"]
    examples["org.removeMember"].query["userId"] = colleague
    # An organization that owns a dashboard could not be deleted.
    examples["me.transferResources"].body |= {"destinationType": "user", "destinationId": colleague}


async def leave_organizations(client: httpx.AsyncClient) -> None:
    """Delete the organizations of the user, who is their only administrator and could not be deleted."""
    for org in (await client.get("/orgs")).json()["items"]:
        if org["name"] != "theirs":
            assert (await client.delete(f"/orgs/{org['id']}")).is_success


async def refuse_unknown_field(client: httpx.AsyncClient, example: Example) -> None:
    """Send the body of an example with one field more: it is refused, and the field is named."""
    if not isinstance(example.body, dict) or example.id in ANY_FIELDS:
        return
    body = {**example.body, "noSuchField": 1}
    response = await client.request(example.method, example.path, params=example.query, json=body)
    assert response.status_code == 400, (example.id, response.status_code, response.text)
    refusal = response.json()
    assert refusal["type"] == "Validation"
    assert "noSuchField" in refusal["message"], (example.id, refusal)


async def served_examples(server: ServerProcess) -> dict[str, Example]:
    document = await server.call("GET", "/openapi.json", token="")
    found = [
        Example(path, method, operation, document["components"]["schemas"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]
    return {example.id: example for example in sorted(found, key=lambda example: example.order)}


@pytest.mark.timeout(600)
async def test_every_example_works_on_the_demo(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "--demo") as server:
        await server.prints("The token is valid for a day")
        assert await server.listens()
        server.token = await server.log_in()
        examples = await served_examples(server)
        assert len(examples) > 100
        # The only user of a server cannot be deleted, and nobody can be invited twice.
        second = (COLLEAGUE, "--password", PASSWORD, "--data", str(tmp_path / "data"))
        assert (await trunkline("user", "add", *second)).returncode == 0
        async with server.client() as client:
            await fill_in(client, examples, tmp_path / "data")
            await fill_in_colleague(server, examples, tmp_path / "data")
            answers: dict[str, httpx.Response] = {}
            for example in examples.values():
                if example.id == "me.delete":
                    await leave_organizations(client)
                fill_in_code(example, answers)
                await refuse_unknown_field(client, example)
                answers[example.id] = response = await run(client, example)
                if example.id in NEED_ANOTHER_SERVER:
                    assert response.status_code in (400, 401)
                    continue
                if example.id in NOT_EXECUTED:
                    assert response.status_code == NOT_EXECUTED[example.id]
                    continue
                assert response.is_success, (example.id, example.path, response.text)
                if example.id == "me.logout":
                    assert (await client.get("/me")).status_code == 401
                    password = examples["me.changePassword"].body["newPassword"]
                    client.headers["Authorization"] = f"Bearer {await server.log_in(password=password)}"
        assert await server.terminate() == 0
        assert "Traceback" not in server.log


async def test_a_restart_of_the_demo_keeps_its_records(tmp_path: Path) -> None:
    paths = []
    for _ in range(2):
        async with started(tmp_path / "data", "--demo") as server:
            await server.prints("The token is valid for a day")
            assert await server.listens()
            paths.append({id: example.path for id, example in (await served_examples(server)).items()})
            assert await server.terminate() == 0
    assert paths[0] == paths[1]
    assert "6920c0de" not in str(paths), "the ids are those of records"
