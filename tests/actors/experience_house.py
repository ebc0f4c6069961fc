"""The experience of an application in a house: one record of each kind."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.actors.house import House
from trunkline.actors.catalogue import RESOURCES
from trunkline.actors.core.records import messages
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.core.values.ids import ROOT


async def fill_experience(house: House, application: bytes) -> None:
    """Records of an experience that refer to each other, a named version, and names that the server has once."""
    ref, by = Ref("experience", application, application), messages.Creator(ROOT.hex(), "user", "owner")
    ids: dict[str, str] = {}
    bodies: dict[str, dict[str, Any]] = {
        "experienceGroup": {"name": "a group"},
        "experienceUser": {"email": "a@example.com", "password": "a hash of a password"},
        "experienceEndpoint": {"route": "/{a?}", "method": "get"},
        "experienceView": {"name": "a view", "viewType": "page"},
        "experienceDomain": {"domainName": f"a{application.hex()}.example"},
        "experienceSlug": {"slug": f"a{application.hex()}"},
        "experienceVersion": {"version": "v1"},
    }
    for resource, body in bodies.items():
        if resource in ("experienceUser", "experienceEndpoint"):
            body["experienceGroupIds"] = [ids["experienceGroup"]]
        post = msgspec.convert(body, RESOURCES[resource].post)
        made = await house.system.ask(ref, messages.CreateRecord(resource=resource, body=post, by=by))
        ids[resource] = made.value.id.hex()
    settings = msgspec.convert({"description": "changed"}, RESOURCES["experienceVersion"].patch)
    develop = messages.PatchRecord(resource="experienceVersion", record=application, body=settings, by=by)
    await house.system.ask(ref, develop)
