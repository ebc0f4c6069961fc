"""VerifyExperienceGroupNode and VerifyDeviceNode: whether a user of an experience is in a group, and whether a device
belongs to a user or to a group.

Output 1 follows a yes, output 0 a no. A user is named by its id or e-mail address, as `{{experience.user.id}}` if it
is not set. VerifyExperienceGroupNode also says yes for a member of a group above `groupIdTemplate`. With the word
`experienceGroup` in `idTypeTemplate`, `idTemplate` of VerifyDeviceNode is the id of a group; the devices of the groups
below it belong to it too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from trunkline.actors.core.records import records
from trunkline.actors.core.values.ids import is_id
from trunkline.actors.engine.experience import user_of
from trunkline.actors.engine.node_rights import may_read
from trunkline.actors.engine.node_type import Form, NodeType
from trunkline.actors.engine.settings import Config, TemplateSetting
from trunkline.actors.engine.tools import (
    item_reader,
    needed_text_reader,
    shortened,
    text_of,
    text_reader,
)
from trunkline.actors.engine.visit import NodeStep, Visit, refused
from trunkline.actors.presentation.experience.access import MayUseDevice
from trunkline.actors.presentation.experience.kind import GROUP

_EMAIL_OR_ID: Final = TemplateSetting("emailOrIdTemplate")
_GROUP_ID: Final = TemplateSetting("groupIdTemplate", is_needed=True)
_ID_TYPE: Final = TemplateSetting("idTypeTemplate")
_ID: Final = TemplateSetting("idTemplate")
_DEVICE_ID: Final = TemplateSetting("deviceIdTemplate", is_needed=True)

_USER: Final = "{{experience.user.id}}"


def _verify_group(config: Config) -> NodeStep:
    who, group = _with_user(config, _EMAIL_OR_ID), needed_text_reader(config, _GROUP_ID)

    def step(visit: Visit) -> int:
        user, id = user_of(visit, who(visit)), group(visit).strip().lower()
        world = visit.world
        above: str | None = id if is_id(id) else None
        for _ in range(world.system.limits.experience_group_ancestors_max + 1):
            if user is None or above is None:
                return 0
            found = records.find(world.system.journal, GROUP, world.application, bytes.fromhex(above))
            if found is None:
                return 0
            if user.id.hex() in found.doc["experienceUserIds"]:
                return 1
            above = found.doc.get("parentId")
        return 0

    return step


def _verify_device(config: Config) -> NodeStep:
    device, kind = needed_text_reader(config, _DEVICE_ID), text_reader(config, _ID_TYPE)
    who = _with_user(config, _ID)

    def step(visit: Visit) -> int | Awaitable[int]:
        word = kind(visit).strip() or "experienceUser"
        if word not in ("experienceUser", "experienceGroup"):
            raise refused(
                f"config.idTypeTemplate: gives {shortened(word)}; give experienceUser or experienceGroup."
            )
        id, of = device(visit).strip(), who(visit).strip()
        if word == "experienceUser":
            user = user_of(visit, of)
            of = "" if user is None else user.id.hex()
        if not is_id(id) or not is_id(of):
            return 0
        return _judged(
            visit,
            MayUseDevice(
                application=visit.world.application,
                device=bytes.fromhex(id),
                id=bytes.fromhex(of),
                of="experienceUserId" if word == "experienceUser" else "experienceGroupId",
            ),
        )

    return step


async def _judged(visit: Visit, question: MayUseDevice) -> int:
    return int(await visit.read(question))


def _with_user(config: Config, setting: TemplateSetting) -> Callable[[Visit], str]:
    return item_reader(config.place(setting), text_of(config, setting) or _USER)


TYPES: Final[dict[str, NodeType]] = {
    "VerifyExperienceGroupNode": NodeType(
        _verify_group, Form("experience", (_EMAIL_OR_ID, _GROUP_ID)), (may_read("experienceGroups.get"),)
    ),
    "VerifyDeviceNode": NodeType(
        _verify_device, Form("experience", (_ID_TYPE, _ID, _DEVICE_ID)), (may_read("experienceGroups.get"),)
    ),
}
