"""Users and groups of an experience, made and read without the API."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.actors.engine.run_house import BY
from tests.actors.house import House
from trunkline.actors.core.records.messages import CreateRecord, GetRecord
from trunkline.actors.core.records.resource import Resource
from trunkline.actors.core.runtime.ref import Ref
from trunkline.actors.presentation.experience.groups import GROUPS
from trunkline.actors.presentation.experience.users import EXPERIENCE_USERS

EMAIL, PASSWORD = "one@example.com", "correct horse"


async def make(house: House, resource: Resource, fields: dict[str, Any]) -> str:
    body = msgspec.convert(fields, resource.post)
    if resource.prepare is not None:
        body = await resource.prepare(body)
    ref = Ref("experience", house.application, house.application)
    made = await house.system.ask(ref, CreateRecord(resource=resource.name, body=body, by=BY))
    return str(made.value.id.hex())


async def user(house: House, email: str = EMAIL, **more: Any) -> str:
    """The id of a new user."""
    return await make(house, EXPERIENCE_USERS, {"email": email, "password": PASSWORD, **more})


async def group(house: House, name: str, **more: Any) -> str:
    """The id of a new group."""
    return await make(house, GROUPS, {"name": name, **more})


async def read(house: House, resource: Resource, id: str) -> dict[str, Any]:
    """A record as the API shows it."""
    ids = {"application": house.application, resource.kind.name: bytes.fromhex(id)}
    found: dict[str, Any] = await house.read(GetRecord(resource=resource.name, ids=ids))
    return found
