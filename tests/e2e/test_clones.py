"""Clones of applications, and application templates that are applied: complete, or not at all."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.e2e.conftest import Server
from tests.e2e.server_process import OWNER, serving, trunkline
from tests.e2e.test_crash import FAULTY
from tests.e2e.test_exports import ended
from tests.e2e.whole_application import SECRET, whole_application
from tests.patience import PATIENCE_S
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.portability.templates.catalogue import load_catalogue
from trunkline.actors.portability.templates.form import bundle_of
from trunkline.limits.table import Limits

StartServer = Callable[..., Any]
Json = Any

EVERYTHING = {
    "includeFiles": True,
    "includePrivateFiles": True,
    "includeDataTableRows": True,
    "includeDevices": True,
}
PACKAGE = load_catalogue(None, Limits())
SHOWN_BY_EACH = (
    "device",
    "deviceRecipe",
    "dataTable",
    "dashboard",
    "webhook",
    "flow",
    "experienceEndpoint",
    "experienceView",
    "experienceGroup",
    "notebook",
)
"""What every template of the package has."""


async def bundle(server: Server, application: str) -> dict[str, Json]:
    """The entries of an export of everything, by name."""
    made = await server.call("POST", f"{application}/export", EVERYTHING, status=200)
    async with server.client("") as client:
        raw = (await client.get(made["url"])).content
    entries: dict[str, Json] = {}
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for name in archive.namelist():
            text = archive.read(name)
            if name.endswith(".jsonl"):
                entries[name] = [json.loads(line) for line in text.splitlines()]
            else:
                entries[name] = json.loads(text) if name.endswith(".json") else text
    return entries


def without_ids(entries: dict[str, Json]) -> dict[str, Json]:
    """The entries with names in place of the ids of resources, each with its lines in the order of their texts."""
    names = {entries["manifest.json"]["applicationId"]: "application"}
    lists = sorted(
        (name for name in entries if name.endswith(".jsonl")), key=lambda name: ("Version" in name, name)
    )
    for entry in lists:
        for line in () if entry.startswith("rows/") else entries[entry]:
            body = line["body"]
            parts = [
                body.get(field, "") for field in ("name", "version", "email", "method", "route", "viewType")
            ]
            of = names.get(line.get("more", {}).get("flowId", ""), "")
            if "id" in line and line["id"] not in names:
                names[line["id"]] = re.sub(r"[0-9a-f]{24}", "", f"{entry} {of} {' '.join(parts)}")

    def named(value: Any) -> Any:
        text = json.dumps(value, sort_keys=True)
        return json.loads(
            re.sub(r"[0-9A-Fa-f]{24}", lambda found: names.get(found[0].lower(), found[0]), text)
        )

    plain: dict[str, Json] = {}
    for entry, value in entries.items():
        if entry.startswith("rows/"):
            plain[named(entry)] = [named(line["body"]) for line in value]
        elif entry.endswith(".jsonl"):
            for line in value:  # a clone has no domains and no slugs: their names are unique
                line["body"] = {
                    name: each for name, each in line["body"].items() if name not in ("domainIds", "slugIds")
                }
            plain[named(entry)] = sorted(map(named, value), key=json.dumps)
        elif entry.endswith(".json"):
            plain[entry] = {name: each for name, each in named(value).items() if name != "exportedAt"}
        else:
            plain[named(entry)] = value
    return plain


# Clones.


async def test_an_alarm_rule_of_missing_devices_is_not_about_the_others(server: Server) -> None:
    """A clone without devices keeps the choice of a rule, since a rule without one is about all devices."""
    application = await server.application()
    pump = (await server.device(application, "pump")).rpartition("/")[2]
    rule = {"name": "quiet", "severity": "info", "condition": {"type": "silence", "seconds": 60}}
    made = await server.call("POST", f"{application}/alarm-rules", rule | {"deviceIds": [pump]})
    for options, is_same in (({}, True), ({"includeDevices": True}, False)):
        cloned = await server.call("POST", f"{application}/clone", options)
        path = f"/applications/{cloned['application']['id']}"
        (found,) = (await server.call("GET", f"{path}/alarm-rules"))["items"]
        assert (found["name"], found["enabled"]) == ("quiet", made["enabled"])
        devices = [each["id"] for each in (await server.call("GET", f"{path}/devices"))["items"]]
        assert found["deviceIds"] == ([pump] if is_same else devices)
        # It can be written as it was read.
        body = {"deviceIds": found["deviceIds"]}
        await server.call("PATCH", f"{path}/alarm-rules/{found['id']}", body, status=200)


async def test_a_clone_is_equal_but_for_its_ids(server: Server) -> None:
    whole = await whole_application(server)
    before = await bundle(server, whole.path)
    answer = await server.call("POST", f"{whole.path}/clone", EVERYTHING, status=201)
    made = answer["application"]
    assert answer["validationErrors"] == []
    assert made["id"] != whole.ids["application"]
    assert (made["ownerType"], made["name"]) == ("user", "whole")
    clone = f"/applications/{made['id']}"
    after = await bundle(server, clone)
    equal, other = without_ids(after), without_ids(before)
    for entry in other:
        assert equal.get(entry) == other[entry], entry
    assert equal == other
    assert await bundle(server, whole.path) | {"manifest.json": 0} == before | {"manifest.json": 0}
    old = {
        line["id"] for lines in before.values() if isinstance(lines, list) for line in lines if "id" in line
    }
    new = {
        line["id"] for lines in after.values() if isinstance(lines, list) for line in lines if "id" in line
    }
    assert not old & new
    assert SECRET not in json.dumps([each for each in after.values() if not isinstance(each, bytes)])
    listed = await server.call("GET", "/applications")
    assert listed["totalCount"] == 2


async def test_a_clone_is_put_where_a_new_application_is(start_server: StartServer) -> None:
    def applications() -> list[int]:
        found = []
        for system in server.systems:
            with system.store.snapshot(own=True) as snapshot:
                found.append(records.total(snapshot, APPLICATION, ROOT))
        return found

    async with start_server(partitions=2) as server:
        application = await server.application()
        assert applications() == [0, 1], "the root has the users"
        for after in ([0, 2], [1, 2], [1, 3]):
            made = await server.call("POST", f"{application}/clone", {}, status=201)
            assert applications() == after
            assert await server.call("GET", f"/applications/{made['application']['id']}/devices")


async def test_a_dry_run_makes_nothing(server: Server) -> None:
    whole = await whole_application(server)
    checked = await server.call("POST", f"{whole.path}/clone", {"dryRun": True, **EVERYTHING}, status=200)
    assert checked == {"success": True, "requiresJob": False}
    assert (await server.call("GET", "/applications"))["totalCount"] == 1


async def test_who_may_clone_to_whom(server: Server) -> None:
    application = await server.application()
    org = (await server.organization()).rpartition("/")[2]
    made = await server.call("POST", f"{application}/clone", {"ownerId": org, "ownerType": "organization"})
    assert made["application"]["ownerId"] == org
    # By default the clone has the owner of the original.
    again = await server.call("POST", f"/applications/{made['application']['id']}/clone", status=201)
    assert (again["application"]["ownerId"], again["application"]["ownerType"]) == (org, "organization")
    back = await server.call(
        "POST", f"/applications/{made['application']['id']}/clone", {"ownerType": "user"}, status=201
    )
    assert back["application"]["ownerType"] == "user"
    for wrong in ({"ownerId": "f" * 24, "ownerType": "user"}, {"ownerId": "f" * 24}):
        refusal = await server.call("POST", f"{application}/clone", wrong, status=400)
        assert refusal["message"].startswith("ownerId: ")
    token = await server.call("POST", f"{application}/tokens", {"name": "t", "scope": ["all.Application"]})
    refusal = await server.call("POST", f"{application}/clone", {}, token=token["token"], status=403)
    assert "cannot clone" in refusal["message"]


async def test_one_clone_at_a_time_for_each_owner(start_server: StartServer) -> None:
    async with start_server(limits={"jobs_running_max": 1}) as server:
        application = await server.application()
        for _ in range(400):
            await server.call("POST", f"{application}/webhooks", {"name": "w"})
        queued = await server.call("POST", f"{application}/clone", {"forceJob": True}, status=202)
        assert queued["jobQueued"] is True
        refusal = await server.call("POST", f"{application}/clone", {"forceJob": True}, status=429)
        assert "of this owner" in refusal["message"]


# Templates.


@pytest.mark.parametrize("id", PACKAGE.templates)
async def test_what_a_template_creates_is_what_it_says(server: Server, id: str) -> None:
    application = await server.application()
    shown = await server.call("PATCH", f"{application}/applyTemplate", {"templateId": id}, status=200)
    assert shown["appliedTemplateIds"] == [id]
    readme = await server.call("GET", f"{application}/readme")
    assert readme["content"] == (await server.call("GET", f"/applicationTemplates/{id}"))["readme"]
    made = without_ids(await bundle(server, application))
    template = bundle_of(PACKAGE.templates[id])
    lines = {
        name: [msgspec.to_builtins(each.parse()) for each in template.lines(name)]
        for name in template.names()
    }
    wanted = without_ids({"manifest.json": {"applicationId": id}, **lines})
    for entry in wanted.keys() - {"manifest.json"}:
        assert len(made[entry]) == len(wanted[entry]), entry
        for one, other in zip(made[entry], wanted[entry], strict=True):
            assert is_part(other, one), (entry, one, other)
    assert any(name.startswith("rows/") for name in wanted)
    summary = (await server.call("GET", application))["summary"]
    told = (await server.call("GET", f"/applicationTemplates/{id}"))["summary"]
    names = {
        "dashboardCount": "dashCount",
        "applicationCertificateAuthorityCount": "certificateAuthorityCount",
    }
    assert {field: summary[names.get(field, field)] for field in told} == told
    assert min(told[f"{one}Count"] for one in SHOWN_BY_EACH) > 0
    # It clashes with itself: nothing of it is created a second time.
    refusal = await server.call("PATCH", f"{application}/applyTemplate", {"templateId": id}, status=422)
    assert {each["type"] for each in refusal["validationErrors"]} >= {"ExperienceEndpoint"}
    assert (await server.call("GET", application))["summary"] == summary


def is_part(wanted: Any, found: Any) -> bool:
    """Whether a value has everything of another one; it may have more fields."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            is_part(each, found.get(name)) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and all(map(is_part, wanted, found)) and len(wanted) == len(found)
    return bool(wanted == found)


async def test_an_application_is_created_from_a_template(server: Server) -> None:
    id = next(iter(PACKAGE.templates))
    body = {
        "name": "mine",
        "description": "d",
        "globals": [{"key": "minTemperature", "json": "3"}],
        "applicationTemplateId": id,
    }
    made = await server.call("POST", "/applications", body, status=201)
    assert (made["name"], made["description"], made["appliedTemplateIds"]) == ("mine", "d", [id])
    assert {each["key"]: each["json"] for each in made["globals"]} == {
        "minTemperature": "3",
        "maxTemperature": "8",
    }
    assert made["summary"]["deviceCount"] == 2
    wrong = {"name": "mine", "applicationTemplateId": "f" * 24}
    refusal = await server.call("POST", "/applications", wrong, status=400)
    assert refusal["message"].startswith("applicationTemplateId: there is no application template")
    taken = {**body, "endpointSlug": "taken-slug"}
    await server.call("POST", "/applications", taken, status=201)
    refusal = await server.call("POST", "/applications", taken, status=400)
    assert refusal["message"].startswith("endpointSlug: taken-slug is taken")
    assert (await server.call("GET", "/applications"))["totalCount"] == 2


# kill -9.


@pytest.mark.slow
@pytest.mark.parametrize("parts", [0, 1, 2])
async def test_clones_and_templates_are_complete_or_invisible_across_a_kill(
    tmp_path: Path, parts: int
) -> None:
    data_dir, limits = tmp_path / "data", tmp_path / "limits.toml"
    limits.write_text("job_wait_s = 0.01\n")
    options, template = ("--limits", str(limits)), next(iter(PACKAGE.templates))
    held = {**OWNER, "CRASH_HELD_PARTS": str(parts)}
    async with serving(data_dir, *options) as server:
        original = await server.application()
        for number in range(50):
            await server.call("POST", f"{original}/webhooks", {"name": f"w{number}"})
        other = await server.application()
        assert await server.terminate() == 0
    async with serving(data_dir, *options, program=FAULTY, env=held) as server:
        await server.call("POST", f"{original}/clone", {"forceJob": True}, status=202)
        await server.prints("the creation is held")
        assert (await server.call("GET", "/applications"))["totalCount"] == 2
        await server.kill()
    async with serving(data_dir, *options, program=FAULTY, env=held) as server:
        body = {"templateId": template}
        job = (await server.call("PATCH", f"{other}/applyTemplate", body, status=202))["jobId"]
        await server.prints("the creation is held")
        await server.kill()
    async with serving(data_dir, *options) as server:
        assert (await ended(server, other, job))["status"] == "completed"
        applied = await server.call("GET", other)
        assert applied["appliedTemplateIds"] == [template]
        made = PACKAGE.get(bytes.fromhex(template))["summary"]
        names = {"dashboardCount": "dashCount"}
        counts = {field: applied["summary"].get(names.get(field, field), 0) for field in made}
        assert {**counts, "applicationCertificateAuthorityCount": 0} == made
        with trio.fail_after(PATIENCE_S):
            while (listed := await server.call("GET", "/applications"))["totalCount"] < 3:
                await trio.lowlevel.checkpoint()
        (clone,) = (each for each in listed["items"] if each["id"] not in f"{original} {other}")
        assert clone["summary"]["webhookCount"] == 50
        assert await server.terminate() == 0
    done = await trunkline("check", "--data", str(data_dir))
    assert done.returncode == 0, done.stdout
