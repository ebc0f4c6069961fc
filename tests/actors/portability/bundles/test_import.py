"""Imports: what a bundle describes is checked as a whole, and made once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.actors.house import House
from trunkline.actors.catalogue import ACTORS, KINDS
from trunkline.actors.core.records import records
from trunkline.actors.core.records.kinds import APPLICATION
from trunkline.actors.core.records.messages import Creator
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT
from trunkline.actors.maintenance.sweep import sweep
from trunkline.actors.platform.jobs.job import Job
from trunkline.actors.portability.bundles.checking import Checked, check_bundle
from trunkline.actors.portability.bundles.clone import new_application
from trunkline.actors.portability.bundles.creation import create_from, publish
from trunkline.actors.portability.bundles.import_jobs import import_new
from trunkline.actors.portability.bundles.plan import Target
from trunkline.actors.portability.bundles.portable import Line, Manifest
from trunkline.actors.portability.bundles.reader import Memory

BY = Creator("a" * 24, "user", "somebody")
OLD_APPLICATION = "0" * 23 + "a"


def old(number: int) -> str:
    """An id in a bundle."""
    return f"{number:024x}"


def source(entries: dict[str, list[dict[str, Any]]], **application: Any) -> Memory:
    """A bundle in memory. Entries are names of resources, or paths."""
    paths = {
        name if "/" in name else f"resources/{name}.jsonl": [msgspec.convert(each, Line) for each in lines]
        for name, lines in entries.items()
    }
    counts = {name: len(lines) for name, lines in entries.items() if "/" not in name}
    rows = sum(len(lines) for path, lines in paths.items() if path.startswith("rows/"))
    if rows:
        counts["DataTableRow"] = rows
    manifest = {
        "format": "trunkline-application",
        "version": 1,
        "exportedAt": "2026-01-01T00:00:00.000Z",
        "applicationId": OLD_APPLICATION,
        "application": {"name": "Copied", **application},
        "resources": counts,
    }
    return Memory(msgspec.convert(manifest, Manifest), paths)


async def check(house: House, bundle: Memory, target: Target) -> Checked:
    return await house.system.read(
        lambda snapshot: check_bundle(house.system, ACTORS, snapshot, bundle, target)
    )


def new_target(house: House, **fields: Any) -> Target:
    ids = house.system.ids
    now_ms = house.clock.wall_ms()
    return Target(ids.new(now_ms), is_new=True, job=(ids.new(now_ms), ids.new(now_ms)), by=BY, **fields)


def into(house: House, **fields: Any) -> Target:
    ids = house.system.ids
    job = ids.new(house.clock.wall_ms())
    return Target(house.application, is_new=False, job=(house.application, job), by=BY, **fields)


def all_of(house: House, kind: str, application: bytes) -> list[dict[str, Any]]:
    with house.system.store.snapshot() as snapshot:
        return [doc for _, doc in records.scan(snapshot, KINDS[kind], application)]


EVERYTHING: dict[str, list[dict[str, Any]]] = {
    "Global": [{"body": {"key": "table", "json": f'"{old(1)}"'}}],
    "DataTable": [
        {
            "id": old(1),
            "body": {
                "name": "Stock",
                "columns": [
                    {"name": "part", "dataType": "string", "constraint": "unique"},
                    {"name": "count", "dataType": "number", "constraint": "required"},
                ],
            },
        }
    ],
    f"rows/{old(1)}.jsonl": [
        {"body": {"part": "bolt", "count": 5}},
        {"body": {"part": "nut", "count": None}},
    ],
    "Device": [
        {"id": old(2), "body": {"name": "Gate", "deviceClass": "gateway"}},
        {"id": old(3), "body": {"name": "Pump", "deviceClass": "peripheral", "gatewayId": old(2)}},
    ],
    "Webhook": [{"id": old(4), "body": {"name": "In"}}],
    "ExperienceGroup": [{"id": old(5), "body": {"name": "All", "deviceIds": [old(3), old(99)]}}],
    "ExperienceUser": [
        {
            "id": old(6),
            "body": {
                "email": "a@example.com",
                "password": "Removed-by-the-export-1",
                "experienceGroupIds": [old(5)],
            },
            "more": {"removed": ["password"]},
        }
    ],
    "ExperienceView": [
        {"id": old(7), "body": {"name": "main", "viewType": "layout"}},
        {"id": old(8), "body": {"name": "home", "viewType": "page", "layoutId": old(7)}},
    ],
    "ExperienceEndpoint": [
        {
            "id": old(9),
            "body": {"method": "get", "route": "/", "staticReply": {"type": "page", "value": old(8)}},
        }
    ],
    "ExperienceDevelopConfig": [{"body": {"description": "the live one"}}],
    "ExperienceVersion": [{"id": old(10), "body": {"version": "v1"}}],
    f"versions/{old(10)}/ExperienceView.jsonl": [
        {"id": old(7), "body": {"name": "main", "viewType": "layout"}},
        {"id": old(8), "body": {"name": "old home", "viewType": "page", "layoutId": old(7)}},
    ],
    f"versions/{old(10)}/ExperienceEndpoint.jsonl": [
        {
            "id": old(9),
            "body": {"method": "get", "route": "/", "staticReply": {"type": "page", "value": old(8)}},
        }
    ],
    "Flow": [
        {
            "id": old(11),
            "body": {
                "name": "Count",
                "triggers": [{"type": "virtualButton", "key": f"{old(11)}-x", "meta": {"id": "x"}}],
                "nodes": [
                    {"id": "n", "type": "TableNode", "config": {"table": old(1), "app": OLD_APPLICATION}}
                ],
            },
            "more": {"defaultVersionId": old(12)},
        }
    ],
    "FlowVersion": [{"id": old(12), "body": {"version": "one"}, "more": {"flowId": old(11)}}],
    "Dashboard": [
        {
            "id": old(13),
            "body": {"name": "Look", "description": f"of {old(3)} and {old(98)}"},
        }
    ],
}


async def test_an_import_that_is_complete_is_not_made_again(house: House) -> None:
    """Its job is started again where the process was killed before the end of it was stored."""
    job, user = house.system.ids.new(house.clock.wall_ms()), b"u" * 12
    target = Target(new_application(job), is_new=True, job=(user, job), by=BY)
    await create_from(house.system, source(EVERYTHING), target, lambda _done, _total: None)
    await publish(house.system, target.application, user, "user")
    doc = {
        "resourceId": user.hex(),
        "input": {"ownerType": "user"},
        "requestedById": BY.id,
        "requestedByType": BY.type,
        "attempts": 2,
        "runQueuedAt": 0,
    }
    again = Job(house.system, Ref("userJobs", ROOT, user), job, doc)
    assert await import_new(again) == {"applicationId": target.application.hex()}


async def test_everything_is_made_with_new_ids_and_nobody_sees_it_before_it_is_complete(house: House) -> None:
    bundle, target = source(EVERYTHING, readme="Read me"), new_target(house)
    checked = await check(house, bundle, target)
    assert checked.problems == []
    counts = await create_from(house.system, bundle, target, lambda _done, _total: None)
    assert counts == {name: count for name, count in checked.counts.items() if count}
    with house.system.store.snapshot() as snapshot:
        hidden = records.find(snapshot, APPLICATION, ROOT, target.application)
    assert hidden is not None
    assert hidden.doc["ownerId"] == ROOT.hex()
    await publish(house.system, target.application, b"u" * 12, "user")
    application = target.application
    (table,) = all_of(house, "dataTable", application)
    gate, pump = sorted(all_of(house, "device", application), key=lambda each: each["name"])
    assert pump["gatewayId"] == gate["id"]
    (group,) = all_of(house, "experienceGroup", application)
    assert group["deviceIds"] == [pump["id"]]
    (user,) = all_of(house, "experienceUser", application)
    assert user["experienceGroupIds"] == [group["id"]]
    assert group["experienceUserIds"] == [user["id"]]
    (flow,) = all_of(house, "flow", application)
    (version,) = all_of(house, "flowVersion", application)
    assert flow["defaultVersionId"] == version["id"]
    (dashboard,) = all_of(house, "dashboard", application)
    assert dashboard["description"] == f"of {pump['id']} and {old(98)}"
    with house.system.store.snapshot() as snapshot:
        found = records.find(snapshot, APPLICATION, ROOT, application)
    assert found is not None
    assert found.doc["globals"][0]["json"] == f'"{table["id"]}"'
    copies = all_of(house, "experienceViewCopy", application)
    assert {each["name"] for each in copies} == {"main", "old home"}


async def test_a_repeated_attempt_makes_nothing_twice(house: House) -> None:
    bundle, target = source(EVERYTHING), new_target(house)
    for _ in range(2):
        await create_from(house.system, bundle, target, lambda _done, _total: None)
    with house.system.store.snapshot() as snapshot:
        totals = {name: records.total(snapshot, kind, target.application) for name, kind in KINDS.items()}
    assert {name: total for name, total in totals.items() if total} == {
        "dataTable": 1,
        "device": 2,
        "webhook": 1,
        "experienceGroup": 1,
        "experienceUser": 1,
        "experienceView": 2,
        "experienceEndpoint": 1,
        "experienceDevelop": 1,
        "experienceVersion": 1,
        "experienceViewCopy": 2,
        "experienceEndpointCopy": 1,
        "flow": 1,
        "flowVersion": 1,
        "dashboard": 1,
    }


async def test_all_problems_are_found_at_once_and_nothing_is_changed(house: House) -> None:
    wrong = {
        "Device": [
            {"id": old(1), "body": {"name": "a", "deviceClass": "peripheral", "gatewayId": old(2)}},
            {"id": old(2), "body": {"name": "b", "deviceClass": "peripheral", "gatewayId": old(1)}},
            {"id": old(2), "body": {"name": "twice"}},
            {"id": old(3), "body": {"nome": "x"}},
        ],
        "ExperienceEndpoint": [
            {"id": old(4), "body": {"method": "get", "route": "/{a}"}},
            {"id": old(5), "body": {"method": "get", "route": "/{b}"}},
        ],
    }
    with house.system.store.snapshot() as snapshot:
        before = records.total(snapshot, APPLICATION, ROOT)
    checked = await check(house, source(wrong), new_target(house))
    assert sorted((each.type, each.id) for each in checked.problems) == [
        ("Device", old(1)),
        ("Device", old(2)),
        ("Device", old(2)),
        ("Device", old(3)),
        ("ExperienceEndpoint", old(5)),
    ]
    with house.system.store.snapshot() as snapshot:
        assert records.total(snapshot, APPLICATION, ROOT) == before


@pytest.mark.parametrize("conflict", ["create", "error", "retain", "replace"])
async def test_what_is_there_already_is_treated_as_asked(house: House, conflict: Any) -> None:
    first = into(house)
    await create_from(house.system, source(EVERYTHING), first, lambda _done, _total: None)
    changed = {
        "Device": [{"id": old(2), "body": {"name": "Gate", "description": "new", "deviceClass": "gateway"}}],
        "Dashboard": [{"id": old(13), "body": {"name": "Look", "description": f"of {old(2)}"}}],
    }
    target = into(house, conflict=conflict)
    checked = await check(house, source(changed), target)
    if conflict == "error":
        assert {each.type for each in checked.problems} == {"Device", "Dashboard"}
        return
    assert checked.problems == []
    await create_from(house.system, source(changed), target, lambda _done, _total: None)
    gates = [each for each in all_of(house, "device", house.application) if each["name"] == "Gate"]
    looks = [each["description"] for each in all_of(house, "dashboard", house.application)]
    if conflict == "create":
        assert len(gates) == 2
        assert len(looks) == 2
    elif conflict == "retain":
        assert len(gates) == 1
        assert "description" not in gates[0]
        assert len(looks) == 1
    else:
        assert [each["description"] for each in gates] == ["new"]
        assert looks == [f"of {gates[0]['id']}"]


async def test_an_application_whose_job_is_gone_is_swept(house: House) -> None:
    target = new_target(house)
    await create_from(house.system, source(EVERYTHING), target, lambda _done, _total: None)
    while await sweep(house.system):
        pass
    with house.system.store.snapshot() as snapshot:
        assert records.find(snapshot, APPLICATION, ROOT, target.application) is None
        assert all(not list(records.scan(snapshot, kind, target.application)) for kind in KINDS.values())
