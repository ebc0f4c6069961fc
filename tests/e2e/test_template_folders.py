"""Template folders: YAML with placeholders becomes an application, at once, or by way of a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.e2e.conftest import Json, Server
from tests.e2e.template_folder import FOLDER, zipped
from tests.e2e.test_imports import imported, send
from trunkline.actors.portability.bundles import folder as folder_module
from trunkline.actors.workflows.flows import yaml_documents
from trunkline.http.cli.main import app


def files_in(directory: Path) -> set[str]:
    return {each.name for each in directory.iterdir() if each.is_file()}


async def named(server: Server, path: str, field: str = "name") -> dict[str, Json]:
    """The records of a list by name."""
    found = await server.call("GET", path)
    return {each[field]: each for each in found["items"]}


DOMAIN = "~exportplaceholderid-files-domain~"


async def check_whole(server: Server, path: str) -> str:
    """Everything of the folder is there, and what names each other does so by the new ids."""
    application = await server.call("GET", path)
    assert (application["name"], application["blobUrlTTL"]) == ("Greenhouse", 3600)
    devices = await named(server, f"{path}/devices")
    bed, main, gate = devices["Bed"]["id"], devices["Main"]["id"], devices["Gate"]["id"]
    assert (devices["Bed"]["parentId"], devices["Sensor"]["gatewayId"]) == (main, gate)
    assert devices["Bed"]["tags"] == [{"key": "since", "value": "2024-05-01"}, {"key": "on", "value": "yes"}]
    assert devices["Sensor"]["tags"] == [{"key": "bed", "value": bed}]
    values = {each["key"]: each["json"] for each in application["globals"]}
    assert {key: values[key] for key in ("limit", "main")} == {"limit": "30", "main": f'"{main}"'}
    assert (await server.call("GET", f"{path}/readme"))["content"].startswith(f"# Greenhouse\n\nBed {bed}.\n")
    assert (await named(server, f"{path}/device-recipes"))["Bed"]["deviceName"] == "Bed N"
    table = (await named(server, f"{path}/data-tables"))["Plants"]
    rows = (await server.call("GET", f"{path}/data-tables/{table['id']}/rows"))["items"]
    columns = ("name", "note", "litres", "hardy", "bed")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("Tomato", "red, \nround", 1.5, False, bed),
        ("Kale", None, 2, True, None),
    ]
    hook = (await named(server, f"{path}/webhooks"))["Weather"]
    assert (hook["responseCode"], len(hook["token"]) > 20) == (201, True)
    broker = (await named(server, f"{path}/integrations"))["Broker"]
    assert broker["mqttConfig"]["host"] == "broker.example.com"
    flows = await named(server, f"{path}/flows")
    water = await server.call("GET", f"{path}/flows/{flows['Water']['id']}")
    assert (water["enabled"], water["triggers"][0]["key"]) == (False, bed)
    assert water["nodes"][0]["config"]["message"] == hook["id"]
    versions = await named(server, f"{path}/flows/{water['id']}/versions", "version")
    assert (water["defaultVersionId"], versions["v1"]["notes"]) == (versions["v1"]["id"], "The first")
    await check_experience(server, path, bed)
    board = await server.call("GET", "/dashboards")
    (dashboard,) = [each for each in board["items"] if each.get("applicationId") == application["id"]]
    shown = await server.call("GET", f"/dashboards/{dashboard['id']}")
    assert (shown["isPasswordProtected"], shown["blocks"][0]["applicationId"]) == (True, application["id"])
    assert "Count" in await named(server, f"{path}/notebooks")
    css = await server.call("GET", f"{path}/files?directory=/css/deep")
    assert [each["name"] for each in css["items"]] == ["garden.css"]
    logo = str(devices["Bed"]["description"])
    assert logo.endswith(f"/{application['id']}/logo.svg")
    return logo


async def check_experience(server: Server, path: str, bed: str) -> None:
    groups = await named(server, f"{path}/experience/groups")
    assert (groups["Beds"]["parentId"], groups["Beds"]["deviceIds"]) == (groups["All"]["id"], [bed])
    users = await named(server, f"{path}/experience/users", "email")
    assert groups["Beds"]["experienceUserIds"] == [users["a@example.com"]["id"]]
    views = await named(server, f"{path}/experience/views")
    assert views["home"]["layoutId"] == views["around"]["id"]
    home = await server.call("GET", f"{path}/experience/views/{views['home']['id']}")
    assert home["body"] == f"<b>{{{{globals.title}}}}</b> {bed}"
    (endpoint,) = (await server.call("GET", f"{path}/experience/endpoints"))["items"]
    assert endpoint["staticReply"]["value"] == views["home"]["id"]
    flows = await named(server, f"{path}/flows?flowClass=experience")
    flow = await server.call("GET", f"{path}/flows/{flows['Home']['id']}")
    assert (flow["flowClass"], flow["enabled"], flow["triggers"][0]["key"]) == (
        "experience",
        True,
        endpoint["id"],
    )
    versions = await named(server, f"{path}/experience/versions", "version")
    assert (versions["v1"]["description"], versions["v1"].get("domainIds", [])) == ("Out", [])
    (old,) = (await server.call("GET", f"{path}/experience/endpoints?version=v1"))["items"]
    assert old["route"] == "/old"


@pytest.mark.parametrize("below", ["", "greenhouse-main/"])
async def test_the_zip_of_a_folder_becomes_an_application(server: Server, below: str) -> None:
    logo = await check_whole(server, await imported(server, zipped(FOLDER, below)))
    async with server.client("") as client:
        assert (await client.get(logo)).text == "<svg/>"


async def told_addresses(server: Server, path: str) -> tuple[str, str]:
    """The addresses of the webhook in a global and in a node."""
    values = {each["key"]: each["json"] for each in (await server.call("GET", path))["globals"]}
    flows = await named(server, f"{path}/flows")
    water = await server.call("GET", f"{path}/flows/{flows['Water']['id']}")
    return json.loads(values["call"]), water["nodes"][1]["config"]["uriTemplate"]


@pytest.mark.parametrize("prefix", ["~exportplaceholderid-", "~losant-"])
async def test_addresses_in_a_folder_are_those_of_the_server_and_its_webhooks(
    server: Server, prefix: str
) -> None:
    folder = {each: text.replace("~exportplaceholderid-", prefix) for each, text in FOLDER.items()}
    path = await imported(server, zipped(folder))
    hook = (await named(server, f"{path}/webhooks"))["Weather"]
    called = f"{server.url}/webhooks/{hook['token']}"
    assert await told_addresses(server, path) == (called, f"{called}?bed=1")
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.post(called, json={})).status_code == 201, "the API document names only 200"
    readme = (await server.call("GET", f"{path}/readme"))["content"]
    assert f"See https://{prefix}docs-url~/beds and {server.url}/applications." in readme
    assert f"Or {server.url.replace('http', 'ws', 1)}/webhooks/{hook['token']}." in readme


async def test_a_webhook_that_stays_keeps_its_token_in_what_comes_in(server: Server) -> None:
    path = await imported(server, zipped(FOLDER))
    (old,) = (await server.call("GET", f"{path}/webhooks"))["items"]
    flows = await named(server, f"{path}/flows")
    await server.call("DELETE", f"{path}/flows/{flows['Water']['id']}")
    options = {"include": ["Webhook", "Flow", "FlowVersion"], "conflictBehavior": "retain"}
    done = await send(server, path, zipped(FOLDER), options=options)
    assert done.status_code == 200, done.text
    (hook,) = (await server.call("GET", f"{path}/webhooks"))["items"]
    assert hook["token"] == old["token"]
    assert (await told_addresses(server, path))[1] == f"{server.url}/webhooks/{old['token']}?bed=1"


async def test_placeholders_of_older_exports_become_ids(server: Server) -> None:
    older = {path: text.replace("~exportplaceholderid-", "~losant-") for path, text in FOLDER.items()}
    logo = await check_whole(server, await imported(server, zipped(older)))
    async with server.client("") as client:
        assert (await client.get(logo)).text == "<svg/>"


async def test_a_folder_becomes_a_bundle_that_becomes_an_application(server: Server, tmp_path: Path) -> None:
    for path, text in FOLDER.items():
        file = tmp_path / "greenhouse" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    bundle = tmp_path / "bundle.zip"
    done = CliRunner().invoke(app, ["template", "convert", str(tmp_path / "greenhouse"), "-o", str(bundle)])
    assert done.exit_code == 0, done.output
    assert "4 Device" in done.output
    assert "Left out: resources of the type ExperienceDomain (1)" in done.output
    assert f"Left out: the address of {DOMAIN}, which stays as it is (1)" in done.output
    path = await imported(server, bundle.read_bytes())
    assert DOMAIN in await check_whole(server, path)
    hook = (await named(server, f"{path}/webhooks"))["Weather"]
    called = f"https://~exportplaceholderid-triggers-url~/webhooks/{hook['token']}"
    assert await told_addresses(server, path) == (called, f"{called}?bed=1")
    missing = CliRunner().invoke(app, ["template", "convert", str(tmp_path), "-o", str(tmp_path / "b.zip")])
    assert missing.exit_code == 0, "the folder lies one below"
    (tmp_path / "greenhouse" / "link.yaml").symlink_to(bundle)
    linked = CliRunner().invoke(
        app, ["template", "convert", str(tmp_path / "greenhouse"), "-o", str(tmp_path / "c.zip")]
    )
    assert linked.exit_code != 0
    assert files_in(tmp_path) == {"bundle.zip", "b.zip"}


async def test_a_folder_goes_into_an_application_and_what_is_wrong_changes_nothing(server: Server) -> None:
    path = await server.application("mine")
    wrong = {**FOLDER, "dataTables/Plants.csv": "name,litres\nTomato,many\nTomato,2\n"}
    refused = await send(server, path, zipped(wrong))
    assert refused.status_code == 422, refused.text
    said = [each["message"] for each in refused.json()["validationErrors"]]
    assert any("litres" in each for each in said), said
    assert (await server.call("GET", f"{path}/devices"))["totalCount"] == 0
    dry = await send(server, path, zipped(FOLDER), options={"dryRun": True})
    assert dry.status_code == 200, dry.text
    assert (await server.call("GET", f"{path}/devices"))["totalCount"] == 0
    done = await send(server, path, zipped(FOLDER), options={"include": ["Device", "DeviceRecipe"]})
    assert done.status_code == 200, done.text
    assert (await server.call("GET", f"{path}/devices"))["totalCount"] == 4
    assert (await server.call("GET", f"{path}/webhooks"))["totalCount"] == 0
    logs = (await server.call("GET", f"{path}/jobLogs"))["items"]
    told = [each["output"]["leftOut"] for each in logs if "leftOut" in each.get("output", {})]
    stays = "the address of ~exportplaceholderid-docs-url~, which stays as it is"
    assert told == [{"resources of the type ExperienceDomain": 1, stays: 1}] * 2


HEAD = "resourceType: {}\nversion: 1\nresources: "
BOMB = "resourceType: Device\nversion: 1\nresources:\n  - &a0 {x: [0,0,0,0,0,0,0,0,0,0]}\n" + "".join(
    f"  - &a{n} {{x: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 9)
)
HOSTILE: dict[str, tuple[dict[str, str], str]] = {
    "values without end": ({"devices.yaml": BOMB}, "more than 1000000 values"),
    "a circle": ({"d.yaml": HEAD.format("Device") + "[&a {x: *a}]"}, "1000000 values"),
    "code": ({"d.yaml": "resourceType: !!python/object/apply:os.getcwd []"}, "d.yaml: is not valid YAML"),
    "bytes": (
        {"d.yaml": HEAD.format("Device") + "[{name: !!binary aGk=}]"},
        "JSON does not",
    ),
    "no yaml": ({"d.yaml": "a: [b"}, "d.yaml: is not valid YAML at line"),
    "another version": ({"d.yaml": "resourceType: Device\nversion: 2\nresources: []"}, "version: is 2"),
    "no list": ({"d.yaml": HEAD.format("Device") + "5"}, "is not a valid export"),
    "a file outside": (
        {"v.yaml": HEAD.format("ExperienceView") + "[{name: a, localFilename: ../../etc/passwd}]"},
        "which the folder does not have",
    ),
    "a path outside": ({"../d.yaml": "a: 1"}, "is not a path within a folder"),
    "no application": (
        {"application.yaml": HEAD.format("Device") + "[]"},
        "resourceType Application",
    ),
    "two applications": (
        {"application.yaml": HEAD.format("Application") + "[{name: a}, {name: b}]"},
        "has 2 applications",
    ),
    "a ragged table": ({"dataTables/Plants.csv": "name\na,b\n"}, "row 1 has 2 cells"),
    "deep": ({"d.yaml": "a: " + "[" * 3000}, "is not valid YAML"),
    "deep trees": (
        {"d.yaml": HEAD.format("Device") + "[" + "{children: [" * 80 + "]}" * 80 + "]"},
        "deeper than",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_folder_that_does_harm_is_refused_with_a_sentence(server: Server, what: str) -> None:
    files, said = HOSTILE[what]
    refused = await send(server, "/applications", zipped({**FOLDER, **files}))
    assert refused.status_code in (400, 413, 422), refused.text
    assert said in refused.json()["message"], refused.text
    assert (await server.call("GET", "/applications"))["items"] == []


async def test_the_values_of_a_text_are_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_documents, "NODES_MAX", 1_000)
    refused = await send(server, "/applications", zipped({**FOLDER, "d.yaml": "a: [" + "0," * 1_000 + "0]"}))
    assert refused.status_code in (400, 413, 422), refused.text
    assert "it has more than 1000 values" in refused.json()["message"]
    assert (await server.call("GET", "/applications"))["items"] == []


async def test_the_texts_of_a_folder_are_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "TEXT_BYTES_MAX", 2_000)
    refused = await send(server, "/applications", zipped(FOLDER))
    assert refused.status_code == 413, refused.text
    assert "the texts have more than 2000 bytes" in refused.json()["message"]
